/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation in JSON, as OpenAI's API has it: an array of {"role": ..., "content": ...}, or an object
 * with that array under "messages". A content is a string, or an array of {"type": "text", "text": ...}.
 */
#ifndef GUMBEL_CLI_CHAT_MESSAGES_H
#define GUMBEL_CLI_CHAT_MESSAGES_H

#include "gumbel.h"

typedef struct cli_messages {
    gumbel_message *items;
    size_t count;
} cli_messages;

/* Reads length bytes of JSON. name is what error messages call it. Free with cli_messages_free.
 * Errors: FORMAT, naming the place in the text or the message. */
gumbel_status cli_messages_parse(const char *name, const char *json, size_t length, cli_messages *messages,
                                 gumbel_error *error);

void cli_messages_free(cli_messages *messages);

#endif
