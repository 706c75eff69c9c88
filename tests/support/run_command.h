/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a program, feeds it, and collects what it says. Without a shell; with a time limit.
 */
#ifndef GUMBEL_TESTS_RUN_COMMAND_H
#define GUMBEL_TESTS_RUN_COMMAND_H

#include <stddef.h>
#include <sys/types.h>

typedef struct command_result {
    int status;            /* exit status; 128 + the signal that ended it; -1: the time limit passed */
    char *output, *errors; /* standard output and standard error; end in a zero */
    size_t output_length;  /* bytes */
} command_result;

/* A program that runs. */
typedef struct running_command {
    pid_t process;
    int output, errors; /* read ends */
    int input;          /* write end, -1 when closed */
    command_result result;
    size_t output_capacity, errors_capacity, errors_length;
} running_command;

/* Starts words[0], a path, with the words up to NULL. Its standard input is a pipe. Ends the test on an
 * error. */
void start_command(running_command *started, const char *const *words);

/* Writes text to its standard input and closes that; text may be NULL. At most what a pipe holds. */
void feed_command(running_command *started, const char *text);

/* Reads until it has written at least bytes to standard output. Ends the test after the time limit. */
void await_output(running_command *started, size_t bytes, int seconds);

/* Reads until part stands in what it has written to standard error. Ends the test after the time limit. */
void await_errors(running_command *started, const char *part, int seconds);

/* Reads to the end, waits for the end of the process. After the time limit it is killed. */
command_result finish_command(running_command *started, int seconds);

/* All of it, with the limit of a minute. */
command_result run_command(const char *const *words, const char *input);

void free_result(command_result *result);

/* Ends the test, showing both outputs, unless the command ended with status. */
#define assert_status(result, expected) assert_status_at(&(result), (expected), __FILE__, __LINE__)
void assert_status_at(const command_result *result, int expected, const char *file, int line);

#endif
