/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines from the user: edited, with a history, on a terminal; as they are from a pipe.
 */
#ifndef GUMBEL_CLI_LINE_READER_H
#define GUMBEL_CLI_LINE_READER_H

#include "cli/storage.h"

#include <stdbool.h>

typedef struct cli_line_reader cli_line_reader;

typedef enum cli_line { CLI_LINE, CLI_LINE_INTERRUPTED, CLI_LINE_END } cli_line;

/* Reads standard input. */
cli_line_reader *cli_line_reader_open(void);
void cli_line_reader_close(cli_line_reader *reader);

/* Whether there is a person on a terminal at the other end. */
bool cli_line_reader_is_terminal(const cli_line_reader *reader);

/* Replaces line by the next one, without its newline. The prompt is shown on a terminal alone. INTERRUPTED:
 * Ctrl-C, what was typed is dropped. */
cli_line cli_read_line(cli_line_reader *reader, const char *prompt, cli_text *line);

#endif
