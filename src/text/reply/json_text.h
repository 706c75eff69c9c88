/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON values as text: compact, in the order of their members, numbers as short as they can be.
 */
#ifndef GUMBEL_TEXT_REPLY_JSON_TEXT_H
#define GUMBEL_TEXT_REPLY_JSON_TEXT_H

#include "base/byte_buffer.h"

#include <jansson.h>

void gb_append_json(gb_byte_buffer *buffer, const json_t *value);

/* Appends the text as a JSON string with its quotes. */
void gb_append_json_string(gb_byte_buffer *buffer, const char *text, size_t length);

/* Appends the escape of a control character. */
void gb_append_json_escape(gb_byte_buffer *buffer, uint8_t control);

#endif
