/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines from the user: edited, with a history, on a terminal; as they are from a pipe.
 */
#ifndef GUMBEL_CLI_TERMINAL_LINE_READER_H
#define GUMBEL_CLI_TERMINAL_LINE_READER_H

#include "cli/terminal/line_editor.h"

typedef struct cli_line_reader cli_line_reader;

/* Reads standard input. keeps_history: on a terminal the history is kept in the user's file of it. */
cli_line_reader *cli_line_reader_open(bool keeps_history);
void cli_line_reader_close(cli_line_reader *reader);

/* Whether there is a person on a terminal at the other end. */
bool cli_line_reader_is_terminal(const cli_line_reader *reader);

/* Replaces line by the next one, without its newline; from a pipe it may have zero bytes. The prompt is shown
 * on a terminal alone, and only there lines are pasted. INTERRUPTED: Ctrl-C, what was typed is dropped. */
cli_line cli_read_line(cli_line_reader *reader, const char *prompt, gb_byte_buffer *line, cli_pasted *pasted);

/* Adds a text to a terminal's history. */
void cli_line_reader_remember(cli_line_reader *reader, const char *text);

#endif
