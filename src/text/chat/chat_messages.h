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

/* ---- For templates that expect another form ---- */

typedef enum gb_chat_form {
    GB_CHAT_JOINED_PARTS = 1, /* each content of parts is a string: its texts, with line breaks between */
    GB_CHAT_WRITTEN_ARGUMENTS = 2,  /* the arguments of calls are JSON as text */
    GB_CHAT_EMPTY_CONTENT = 4,      /* a message without content has an empty one */
    GB_CHAT_ONE_SYSTEM = 8,         /* leading system and developer messages are one */
    GB_CHAT_WRAPPED_ARGUMENTS = 16, /* arguments that are no object are {"arguments": TEXT} */
    GB_CHAT_USERS_RULES = 32,       /* later system and developer messages are a user's */
    GB_CHAT_IN_TURN =
        64, /* results and later rules are a user's, and neighbours of one role are one message */
    GB_CHAT_FORMS = 128
} gb_chat_form;

/* Which of these would change the messages: a sum of them. */
int gb_chat_possible_forms(const json_t *messages);

/* A copy in the forms that are summed up in wanted; written is gb_chat_complete_messages's. NULL: no memory.
 */
json_t *gb_chat_messages_in_form(const json_t *messages, const json_t *written, int wanted);

/* How many system and developer messages the conversation begins with. */
size_t gb_chat_leading_systems(const json_t *messages);

/* "developer" becomes "system". False: no memory. */
bool gb_chat_rename_developer(json_t *messages);

#endif
