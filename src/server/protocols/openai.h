/* SPDX-License-Identifier: Apache-2.0
 *
 * What OpenAI's chats and completions have in common.
 */
#ifndef GUMBEL_SERVER_PROTOCOLS_OPENAI_H
#define GUMBEL_SERVER_PROTOCOLS_OPENAI_H

#include "server/protocols/protocol.h"

/* The fields that each object and chunk begins with. */
json_t *server_openai_object(const server_generation *generation, const char *type);

json_t *server_openai_usage(const server_generation *generation);

/* A chunk of an answer with a value (taken over) of that name, "delta" or "text". is_finished: its last one.
 */
void server_openai_chunk(server_stream *stream, const char *type, server_answer *answer, const char *name,
                         json_t *value, bool is_finished);

/* The last chunk, with the usage where it is wanted, and [DONE]. */
/* The same of a text alone, or of an object whose only field it is. A token costs no tree of JSON. */
void server_openai_text_chunk(server_stream *stream, const char *type, server_answer *answer,
                              const char *name, const char *field, const char *text, size_t length);
void server_openai_end(server_stream *stream, const char *type);
void server_openai_fail(server_stream *stream, const server_failure *failure);

#define SERVER_OPENAI_PING ": ping\n\n"

#endif
