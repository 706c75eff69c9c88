/* SPDX-License-Identifier: Apache-2.0
 *
 * Other forms of a conversation, for templates that refuse or forget what it has as it is.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_FORMS_H
#define GUMBEL_TEXT_CHAT_CHAT_FORMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum gb_chat_form {
    GB_CHAT_JOINED_PARTS = 1, /* each content of parts is a string: its texts, with line breaks between */
    GB_CHAT_WRITTEN_ARGUMENTS = 2,  /* the arguments of calls are JSON as text */
    GB_CHAT_EMPTY_CONTENT = 4,      /* a message without content has an empty one */
    GB_CHAT_ONE_SYSTEM = 8,         /* leading system and developer messages are one */
    GB_CHAT_WRAPPED_ARGUMENTS = 16, /* arguments that are no object are {"arguments": TEXT} */
    GB_CHAT_USERS_RULES = 32,       /* later system and developer messages are a user's */
    GB_CHAT_NEIGHBOURS = 64,        /* neighbours that are both a user's or an assistant's are one message */
    GB_CHAT_USERS_RESULTS = 128,    /* results of tools are a user's as well as later rules */
    GB_CHAT_FORMS = 256
} gb_chat_form;

/* Which of these would change the messages: a sum of them. */
int gb_chat_possible_forms(const json_t *messages);

/* Whether the sum is none that another one stands for. */
bool gb_chat_is_form(int form);

/* A copy in the forms that are summed up in wanted; written is gb_chat_complete_messages's. NULL: no memory.
 */
json_t *gb_chat_messages_in_form(const json_t *messages, const json_t *written, int wanted);

/* Whether a system or developer message behind the first message is nowhere in the text. */
bool gb_chat_lacks_rules(const json_t *messages, const char *text, size_t length);

#endif
