/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands say on standard error, and the exit status that goes with it. Every message is one line
 * that begins with "gumbel: ", and what a terminal could obey in it is escaped.
 */
#ifndef GUMBEL_CLI_BASE_REPORT_H
#define GUMBEL_CLI_BASE_REPORT_H

#include "gumbel.h"

#include <stdio.h>

#if defined(__GNUC__)
#define CLI_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define CLI_PRINTF(format_index, first)
#endif

/* Exit statuses. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,       /* a file, the system or the library refused */
    CLI_USAGE = 2,        /* the command line is wrong */
    CLI_INTERRUPTED = 130 /* Ctrl-C, as shells report it */
};

/* Whether notes are left out; errors and warnings never are. */
void cli_set_quiet(bool is_quiet);
bool cli_is_quiet(void);

/* Prints a note, unless quiet. */
void cli_note(const char *format, ...) CLI_PRINTF(1, 2);

/* Prints an error; return CLI_FAILED and CLI_USAGE. */
int cli_fail(const char *format, ...) CLI_PRINTF(1, 2);
int cli_fail_usage(const char *format, ...) CLI_PRINTF(1, 2);

/* Prints the library's error and returns CLI_FAILED; for CANCELLED it returns CLI_INTERRUPTED. */
int cli_fail_with(const gumbel_error *error);

/* Fills error with an ARGUMENT error; a message that is too long for it loses its middle. Returns false, so
 * that a failing check can end in it. */
bool cli_refuse(gumbel_error *error, const char *format, ...) CLI_PRINTF(2, 3);

/* A log callback for the library: warnings become notes; info lines do too when user (a bool *) is true. */
void cli_log(void *user, gumbel_log_level level, const char *line);

/* Prints a name, a path or another text of one line that came from a file, as gumbel_escape writes it. */
void cli_print_escaped(FILE *file, const char *text);

/* A write callback for the library: user is a FILE *. */
void cli_write(void *user, const char *text, size_t length);

#endif
