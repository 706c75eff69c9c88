/* SPDX-License-Identifier: Apache-2.0
 *
 * One line on a terminal that shows how far a long task is, how fast it goes and when it will be done. In a
 * pipe it stays quiet. Ctrl-C cancels the task.
 */
#ifndef GUMBEL_CLI_BASE_PROGRESS_H
#define GUMBEL_CLI_BASE_PROGRESS_H

#include "gumbel.h"

typedef struct cli_progress {
    bool shown;       /* standard error is a terminal, and the user did not ask for quiet */
    bool line_is_up;  /* there is a line to erase */
    double begin;     /* seconds, when the task began */
    double last_line; /* seconds, when the line was printed last */
    uint64_t before;  /* of what is done, what was done before it began: no part of the rate */
} cli_progress;

void cli_progress_begin(cli_progress *progress, bool quiet);

/* A progress callback for the library; user is the cli_progress. */
bool cli_progress_update(void *user, const char *what, uint64_t done, uint64_t total);

/* Shows the same line for things that are counted in place of bytes: what is "tokens". */
void cli_progress_count(cli_progress *progress, const char *what, uint64_t done, uint64_t total);

/* Erases the line, before other text or at the end. */
void cli_progress_erase(cli_progress *progress);

/* Says what was written: "wrote model.gumbel: 512.3 MB in 4.5 s". */
void cli_progress_report(const cli_progress *progress, const char *path);

/* The line's text: "weights  35%  1.2 of 3.4 GB  210.0 MB/s  11 s left". */
void cli_progress_describe(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                           size_t capacity);

/* "tokens  35%  1200 of 3400  21.0 a second  11 s left". */
void cli_progress_describe_count(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                                 size_t capacity);

#endif
