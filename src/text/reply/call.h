/* SPDX-License-Identifier: Apache-2.0
 *
 * What a field that is no text says: tool calls, or a value.
 */
#ifndef GUMBEL_TEXT_REPLY_CALL_H
#define GUMBEL_TEXT_REPLY_CALL_H

#include "text/reply/reply.h"

/* Adds parts for the open field, whose text ends at byte `end` of the reply; behind it is what the field's
 * closing has taken, up to `behind`. is_closed: it has one. False, and no part, where the text is not what
 * the format says. */
bool gb_add_field_parts(gumbel_reply *reply, size_t end, size_t behind, bool is_closed);

#endif
