/* SPDX-License-Identifier: Apache-2.0
 *
 * Wraps lines at words while their text comes: a word is held back until it is complete, and begins a new
 * line where the present one has no room for it. Characters without blanks between them, as in Chinese, are
 * words of their own. Code (between fences, or indented by four columns), tables and words longer than a line
 * are left to the terminal.
 */
#ifndef GUMBEL_CLI_TERMINAL_WORD_WRAP_H
#define GUMBEL_CLI_TERMINAL_WORD_WRAP_H

#include "cli/base/storage.h"
#include "gumbel.h"

typedef enum cli_wrap_line {
    CLI_WRAP_UNKNOWN, /* its first word is not complete */
    CLI_WRAP_PROSE,
    CLI_WRAP_VERBATIM /* code or a table */
} cli_wrap_line;

/* Start from {.write = ..., .user = ...}. */
typedef struct cli_word_wrap {
    gumbel_write_callback write;
    void *user;
    unsigned columns; /* of the terminal, may change at any time; 0: lines are not wrapped */
    /* The rest is the wrapper's own. */
    unsigned column; /* where what is written next stands */
    gb_byte_buffer blanks, word;
    unsigned blank_columns, word_columns; /* of what is held back */
    unsigned indent;                      /* columns of blanks before the line's first word */
    cli_wrap_line line;
    char fence;               /* '`' or '~' between two fences, else 0 */
    bool is_long;             /* the word has no room in any line and is written as it comes */
    int32_t last, last_break; /* utf8proc's state for clusters */
} cli_word_wrap;

/* Takes text of whole UTF-8 characters, of which newline and tab are the only controls. */
void cli_word_wrap_put(cli_word_wrap *wrap, const char *text, size_t length);

/* Writes what is held back. The next text begins in the first column. */
void cli_word_wrap_end(cli_word_wrap *wrap);

void cli_word_wrap_free(cli_word_wrap *wrap);

#endif
