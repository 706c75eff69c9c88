/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that a person types at a terminal: edited with libedit, recalled from a history, and pasted as a
 * whole.
 */
#ifndef GUMBEL_CLI_TERMINAL_LINE_EDITOR_H
#define GUMBEL_CLI_TERMINAL_LINE_EDITOR_H

#include "cli/base/storage.h"

#include <stdbool.h>

typedef struct cli_line_editor cli_line_editor;

typedef enum cli_line { CLI_LINE, CLI_LINE_INTERRUPTED, CLI_LINE_END } cli_line;

typedef enum cli_pasted {
    CLI_TYPED,       /* at least the line's beginning */
    CLI_PASTED,      /* its beginning was pasted */
    CLI_PASTED_WHOLE /* all of it was */
} cli_pasted;

/* Takes the terminal that standard input and output are; NULL where they are none. keeps_history: the
 * history is kept in the user's file of it. */
cli_line_editor *cli_line_editor_open(bool keeps_history);

/* Gives the terminal back. NULL is allowed. */
void cli_line_editor_close(cli_line_editor *editor);

/* Appends a line, without the newline that ended it, to line; a pasted one may have several. INTERRUPTED:
 * Ctrl-C, what was typed is dropped. */
cli_line cli_edit_line(cli_line_editor *editor, const char *prompt, gb_byte_buffer *line, cli_pasted *pasted);

/* Adds a text to the history, unless it is the last one there. */
void cli_line_editor_remember(cli_line_editor *editor, const char *text);

#endif
