/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's text on a terminal. What the terminal could obey is escaped, however it is cut into pieces, and
 * lines can be wrapped at words.
 */
#ifndef GUMBEL_CLI_TERMINAL_TEXT_H
#define GUMBEL_CLI_TERMINAL_TEXT_H

#include "cli/terminal/word_wrap.h"

/* Start from {.wrap = {.write = ..., .user = ...}}; wrap.columns can be set at any time. */
typedef struct cli_terminal_text {
    cli_word_wrap wrap;
    char pending[4]; /* the first bytes of a character */
    size_t pending_count;
} cli_terminal_text;

void cli_terminal_text_put(cli_terminal_text *text, const char *bytes, size_t length);

/* Writes what is held back: a character's first bytes, a word. The next text begins in the first column. */
void cli_terminal_text_end(cli_terminal_text *text);

void cli_terminal_text_free(cli_terminal_text *text);

#endif
