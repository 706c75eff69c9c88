/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations as JSON, in the form that templates are given: checked, and with the fields that transformers
 * adds. Structures and JSON texts become the same array.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_MESSAGES_H
#define GUMBEL_TEXT_CHAT_CHAT_MESSAGES_H

#include "base/status.h"

#include <jansson.h>

/* Reads a JSON text of the wanted type; what names it in messages. Errors: FORMAT, telling the line where
 * it ends to be JSON or what was found, MEMORY. Release with json_decref. */
gumbel_status gb_chat_read_json(const char *what, const char *text, json_type wanted, json_t **json,
                                gumbel_error *error);

/* The messages as an array such as OpenAI's API has. Errors: ARGUMENT, MEMORY. */
gumbel_status gb_chat_messages_to_json(const gumbel_message *messages, size_t count, json_t **array,
                                       gumbel_error *error);

/* Checks the array and changes it to what templates expect: fields that are null are left out, a reasoning
 * has all the names that templates look for, arguments of calls are objects, or the text that they were where
 * that is none. *written gets, for each call in order, its arguments as the text that they were, or null; the
 * caller's also after an error. Errors:
 * ARGUMENT, naming message and field; MEMORY. */
gumbel_status gb_chat_complete_messages(json_t *messages, json_t **written, gumbel_error *error);

/* Checks that each tool is an object with a name. Errors: ARGUMENT, naming the tool. */
gumbel_status gb_chat_check_tools(const json_t *tools, gumbel_error *error);

/* Of a message that was checked. */
const char *gb_chat_role(const json_t *message);
bool gb_chat_is_system(const json_t *message); /* or the developer's */

/* "developer" becomes "system". False: no memory. */
bool gb_chat_rename_developer(json_t *messages);

#endif
