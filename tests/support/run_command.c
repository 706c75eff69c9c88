/* SPDX-License-Identifier: Apache-2.0 */
#include "support/run_command.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The parent's end is closed in the child, the child's end replaces its standard stream. */
static void attach(posix_spawn_file_actions_t *actions, const int *ends, int child_end, int stream) {
    posix_spawn_file_actions_adddup2(actions, ends[child_end], stream);
    posix_spawn_file_actions_addclose(actions, ends[0]);
    posix_spawn_file_actions_addclose(actions, ends[1]);
}

void start_command(running_command *started, const char *const *words) {
    *started = (running_command){0};
    int input[2], output[2], errors[2];
    assert_int_equal(pipe(input) | pipe(output) | pipe(errors), 0);
    signal(SIGPIPE, SIG_IGN); /* a program that ends before it reads its input is no failure of ours */
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    attach(&actions, input, 0, STDIN_FILENO);
    attach(&actions, output, 1, STDOUT_FILENO);
    attach(&actions, errors, 1, STDERR_FILENO);
    int refused =
        posix_spawn(&started->process, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    close(errors[1]);
    started->input = input[1];
    started->output = output[0];
    started->errors = errors[0];
    if (refused)
        fail_msg("%s: %s", words[0], strerror(refused));
}

void feed_command(running_command *started, const char *text) {
    size_t length = text ? strlen(text) : 0;
    while (length > 0) {
        ssize_t written = write(started->input, text, length);
        if (written <= 0)
            break;
        text += written;
        length -= (size_t)written;
    }
    close(started->input);
    started->input = -1;
}

/* Appends what is there to read; closes the pipe at its end. */
static void read_some(int *from, char **text, size_t *length, size_t *capacity) {
    if (*length + 4097 > *capacity) {
        *capacity = 2 * *capacity + 8192;
        *text = realloc(*text, *capacity);
        assert_non_null(*text);
    }
    ssize_t count = read(*from, *text + *length, 4096);
    if (count < 0 && errno == EINTR)
        return;
    if (count > 0)
        *length += (size_t)count;
    (*text)[*length] = '\0';
    if (count <= 0) {
        close(*from);
        *from = -1;
    }
}

/* Waits for something to read until the deadline and reads it. Returns 0 when the deadline passed. */
static int read_either(running_command *started, double deadline) {
    struct pollfd pipes[2] = {{.fd = started->output, .events = POLLIN},
                              {.fd = started->errors, .events = POLLIN}};
    double left = deadline - now();
    int ready = left > 0 ? poll(pipes, 2, (int)(left * 1000) + 1) : 0;
    if (ready < 0)
        return errno == EINTR;
    if (pipes[0].revents)
        read_some(&started->output, &started->result.output, &started->result.output_length,
                  &started->output_capacity);
    if (pipes[1].revents)
        read_some(&started->errors, &started->result.errors, &started->errors_length,
                  &started->errors_capacity);
    return ready;
}

void await_output(running_command *started, size_t bytes, int seconds) {
    double deadline = now() + seconds;
    while (started->result.output_length < bytes && started->output >= 0)
        if (!read_either(started, deadline))
            fail_msg("no output within %d s", seconds);
    if (started->result.output_length < bytes)
        fail_msg("the output ended after %zu bytes", started->result.output_length);
}

void await_errors(running_command *started, const char *part, int seconds) {
    double deadline = now() + seconds;
    while (!started->result.errors || !strstr(started->result.errors, part)) {
        if (started->errors < 0)
            fail_msg("it ended without \"%s\"", part);
        if (!read_either(started, deadline))
            fail_msg("no \"%s\" within %d s", part, seconds);
    }
}

command_result finish_command(running_command *started, int seconds) {
    double deadline = now() + seconds;
    int in_time = 1, status = 0;
    while (in_time && (started->output >= 0 || started->errors >= 0))
        in_time = read_either(started, deadline);
    if (!in_time)
        kill(started->process, SIGKILL);
    while (waitpid(started->process, &status, 0) < 0 && errno == EINTR) {
    }
    int *const ends[] = {&started->output, &started->errors, &started->input};
    for (size_t i = 0; i < 3; i++)
        if (*ends[i] >= 0)
            close(*ends[i]);
    started->result.status = !in_time              ? -1
                             : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                   : WEXITSTATUS(status);
    return started->result;
}

command_result run_command(const char *const *words, const char *input) {
    running_command started;
    start_command(&started, words);
    feed_command(&started, input);
    return finish_command(&started, 60);
}

void free_result(command_result *result) {
    free(result->output);
    free(result->errors);
    *result = (command_result){0};
}

void assert_status_at(const command_result *result, int expected, const char *file, int line) {
    if (result->status == expected)
        return;
    print_error("status %d, expected %d\noutput: %s\nerrors: %s\n", result->status, expected,
                result->output ? result->output : "", result->errors ? result->errors : "");
    _fail(file, line);
}
