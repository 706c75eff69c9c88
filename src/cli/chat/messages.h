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
 * Free with cli_messages_free, also after an error. Errors: FORMAT, naming the place in the text; MEMORY. */
gumbel_status cli_messages_parse(const char *name, const char *json, size_t length, cli_messages *messages,
                                 gumbel_error *error);

void cli_messages_free(cli_messages *messages);

/* Writes the conversation's messages to the file at path, and adds those of a file to one. Errors: ARGUMENT,
 * IO, FORMAT. */
gumbel_status cli_messages_write(const char *path, const gumbel_conversation *conversation,
                                 gumbel_error *error);
gumbel_status cli_messages_read(const char *path, gumbel_conversation *conversation, gumbel_error *error);

/* Replaces the system message at the beginning, or puts one there; NULL: takes it away. Errors: MEMORY. */
gumbel_status cli_messages_set_system(gumbel_conversation *conversation, const char *system,
                                      gumbel_error *error);

#endif
