/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages and tools of other APIs as those of OpenAI's chats, which chat templates are written for.
 */
#ifndef GUMBEL_SERVER_PROTOCOLS_CONVERT_H
#define GUMBEL_SERVER_PROTOCOLS_CONVERT_H

#include "server/fields/request.h"
#include "server/protocols/responses_store.h"

/* Anthropic's messages, system and tools. */
bool server_convert_messages(server_request *request, server_responses *responses, server_failure *failure);

/* The input, instructions, tools and previous response of the Responses API. */
bool server_convert_input(server_request *request, server_responses *responses, server_failure *failure);

/* ---- Parts of both ------------------------------------------------------------------------------------- */

/* Appends a message of that role with the content (taken over; NULL: none) and returns it. */
json_t *server_add_message(json_t *messages, const char *role, json_t *content);

/* The last message if it is an assistant's, else a new one. */
json_t *server_assistant_message(json_t *messages);

/* Adds a call to an assistant's message. The values are borrowed. */
void server_add_call(json_t *message, const char *id, const char *name, json_t *arguments);

/* A tool of OpenAI's chats, of another API's `tool` with this name. The values are borrowed; NULL: none. */
json_t *server_make_tool(const json_t *tool, json_t *name, json_t *parameters);

/* The text of a part; NULL, with failure: it is of no type in types. place: "messages[0].content[1]". */
const char *server_part_text(const char *place, const json_t *part, const char *types,
                             server_failure *failure);

/* The same of a part of a tool's result: images and files, which no model here sees, are named. An agent
 * could not go on with a conversation that is refused for what a tool gave. */
const char *server_result_text(const char *place, const json_t *part, const char *types,
                               server_failure *failure);

#endif
