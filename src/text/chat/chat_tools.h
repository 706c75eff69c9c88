/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools as text, for templates that have no place for them: a message lists them and says how one is called,
 * and earlier calls stand in the content. The reply formats "plain" and "think" read calls that are
 * written so.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_TOOLS_H
#define GUMBEL_TEXT_CHAT_CHAT_TOOLS_H

#include "base/status.h"

#include <jansson.h>

/* Whether the template looks at the conversation's tools. */
bool gb_chat_shows_tools(const char *template_text);

/* Adds the tools, a list, to the first message if that is the system's, or before what a user says first: no
 * template refuses that. Errors: MEMORY. */
gumbel_status gb_chat_insert_tools(json_t *messages, const json_t *tools, gumbel_error *error);

/* Calls in the first `count` messages become content, behind what the assistant says, where the template
 * looks at no calls. Errors: MEMORY. */
gumbel_status gb_chat_insert_calls(json_t *messages, size_t count, const char *template_text,
                                   gumbel_error *error);

#endif
