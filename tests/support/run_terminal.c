/* SPDX-License-Identifier: Apache-2.0 */
#include "support/run_terminal.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <util.h>
#else
#include <pty.h>
#include <utmp.h>
#endif

#include <cmocka.h>

enum { ROWS = 24, PATIENCE = 60000 }; /* milliseconds */

static const char brackets_on[] = "\033[?2004h", brackets_off[] = "\033[?2004l";

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void start_on_terminal(terminal_run *run, unsigned short columns, const char *const *words) {
    struct winsize size = {.ws_row = ROWS, .ws_col = columns};
    *run = (terminal_run){.output = calloc(1, 1)};
    assert_int_equal(openpty(&run->ours, &run->theirs, NULL, NULL, &size), 0);
    run->process = fork();
    if (run->process == 0) {
        close(run->ours);
        login_tty(run->theirs);
        setenv("TERM", "xterm", 1);
        execv(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    assert_true(run->process > 0);
}

void resize_terminal(const terminal_run *run, unsigned short columns) {
    struct winsize size = {.ws_row = ROWS, .ws_col = columns};
    assert_int_equal(ioctl(run->ours, TIOCSWINSZ, &size), 0);
}

void type_text(const terminal_run *run, const char *text) {
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t written = write(run->ours, text, length);
        assert_true(written > 0);
        text += written;
        length -= (size_t)written;
    }
}

void paste_text(const terminal_run *run, const char *text) {
    type_text(run, "\033[200~");
    type_text(run, text);
    type_text(run, "\033[201~");
}

/* Reads what comes within the milliseconds; false when nothing did. */
static bool read_some(terminal_run *run, int64_t milliseconds) {
    char bytes[4096];
    struct pollfd file = {.fd = run->ours, .events = POLLIN};
    if (poll(&file, 1, milliseconds > 0 ? (int)milliseconds : 0) <= 0)
        return false;
    ssize_t count = read(run->ours, bytes, sizeof bytes);
    if (count <= 0)
        return false;
    char *grown = realloc(run->output, run->length + (size_t)count + 1);
    assert_non_null(grown);
    memcpy(grown + run->length, bytes, (size_t)count);
    run->length += (size_t)count;
    grown[run->length] = '\0';
    run->output = grown;
    return true;
}

void await_text(terminal_run *run, const char *text) {
    int64_t deadline = now() + PATIENCE;
    const char *found;
    while (!(found = strstr(run->output + run->looked, text)))
        if (!read_some(run, deadline - now()))
            fail_msg("\"%s\" was not drawn; this was: %s", text, run->output + run->looked);
    run->looked = (size_t)(found - run->output) + strlen(text);
}

void watch_terminal(terminal_run *run, int milliseconds) {
    for (int64_t end = now() + milliseconds; now() < end;)
        read_some(run, end - now());
}

/* The last of the two that was sent. */
static bool has_brackets(const terminal_run *run) {
    bool has = false;
    for (const char *at = run->output; (at = strstr(at, "\033[?2004")); at++)
        has = strncmp(at, brackets_off, sizeof brackets_off - 1) != 0;
    return has;
}

bool terminal_is_restored(const terminal_run *run) {
    const tcflag_t expected = ICANON | ECHO | ISIG | IEXTEN;
    struct termios settings;
    assert_int_equal(tcgetattr(run->theirs, &settings), 0);
    return (settings.c_lflag & expected) == expected && !(settings.c_iflag & INLCR) && !has_brackets(run) &&
           strstr(run->output, brackets_on);
}

int finish_on_terminal(terminal_run *run) {
    int64_t deadline = now() + PATIENCE;
    int status;
    while (waitpid(run->process, &status, WNOHANG) == 0) {
        if (now() > deadline)
            return -1;
        read_some(run, 10); /* lest the process waits for that */
    }
    run->process = 0;
    while (read_some(run, 50)) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void free_terminal_run(terminal_run *run) {
    int status;
    if (run->process > 0) {
        kill(run->process, SIGKILL);
        waitpid(run->process, &status, 0);
    }
    close(run->ours);
    close(run->theirs);
    free(run->output);
    *run = (terminal_run){0};
}
