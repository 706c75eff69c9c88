/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user says in one turn. A backslash at a line's end continues it on the next. At a terminal a text
 * between """ and """ may have any lines, and so may one that is pasted.
 */
#ifndef GUMBEL_CLI_CHAT_MESSAGE_H
#define GUMBEL_CLI_CHAT_MESSAGE_H

#include "cli/terminal/line_reader.h"

typedef struct cli_chat_message {
    gb_byte_buffer text; /* may have zero bytes, from a pipe */
    bool is_command;     /* it begins with a slash that was typed, or came from a pipe */
} cli_chat_message;

/* Reads the next one, after the prompt at a terminal. There it is added to the history, so that it can be
 * recalled as a whole. */
cli_line cli_read_message(cli_line_reader *reader, const char *prompt, cli_chat_message *message);

#endif
