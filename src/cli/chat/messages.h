/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation in a file of JSON: an array of messages as OpenAI's API has it, or an object with that array
 * under "messages" and, if it has any, the tools under "tools".
 */
#ifndef GUMBEL_CLI_CHAT_MESSAGES_H
#define GUMBEL_CLI_CHAT_MESSAGES_H

#include "gumbel.h"

/* JSON texts, as gumbel_chat_options takes them. */
typedef struct cli_messages {
    char *messages, *tools; /* tools may be NULL */
} cli_messages;

/* Reads length bytes of JSON; what the messages say is not looked at. name is what error messages call it.
 * Free with cli_messages_free. Errors: FORMAT, naming the place in the text. */
gumbel_status cli_messages_parse(const char *name, const char *json, size_t length, cli_messages *messages,
                                 gumbel_error *error);

void cli_messages_free(cli_messages *messages);

/* Writes messages of text to the file at path. Errors: ARGUMENT, IO. */
gumbel_status cli_messages_write(const char *path, const gumbel_message *messages, size_t count,
                                 gumbel_error *error);

typedef struct cli_plain_message {
    const char *role; /* a literal */
    char *content;    /* owned */
} cli_plain_message;

/* Reads what cli_messages_write has written; the caller frees the messages and their contents. Errors: IO,
 * FORMAT. */
gumbel_status cli_messages_read(const char *path, cli_plain_message **messages, size_t *count,
                                gumbel_error *error);

#endif
