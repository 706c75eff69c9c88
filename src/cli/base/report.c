/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/report.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool quiet;

void cli_set_quiet(bool is_quiet) {
    quiet = is_quiet;
}

bool cli_is_quiet(void) {
    return quiet;
}

void cli_print_escaped(FILE *file, const char *text) {
    gumbel_escape(GUMBEL_ESCAPE_LINE, text, strlen(text), cli_write, file);
}

/* Without an allocation: that may be what failed. */
static void print_line(const char *format, va_list arguments) {
    char text[8192];
    bool is_cut = vsnprintf(text, sizeof text, format, arguments) >= (int)sizeof text;
    fflush(stdout); /* what was said before comes first where both go to one terminal */
    fputs("gumbel: ", stderr);
    cli_print_escaped(stderr, text);
    fputs(is_cut ? "...\n" : "\n", stderr);
}

void cli_note(const char *format, ...) {
    va_list arguments;
    if (quiet)
        return;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
}

int cli_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_fail_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
    return CLI_USAGE;
}

int cli_fail_with(const gumbel_error *error) {
    cli_fail("%s", error->message);
    return error->status == GUMBEL_ERROR_CANCELLED ? CLI_INTERRUPTED : CLI_FAILED;
}

bool cli_refuse(gumbel_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gb_fail_list(error, GUMBEL_ERROR_ARGUMENT, format, arguments);
    va_end(arguments);
    return false;
}

void cli_log(void *user, gumbel_log_level level, const char *line) {
    const bool *verbose = user;
    if (level == GUMBEL_LOG_WARNING)
        cli_fail("warning: %s", line); /* also when quiet */
    else if (*verbose)
        cli_note("%s", line);
}

void cli_write(void *user, const char *text, size_t length) {
    fwrite(text, 1, length, user);
}
