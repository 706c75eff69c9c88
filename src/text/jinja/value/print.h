/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as text: Python's str() and repr(), which is what {{ }} shows, and JSON both ways.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_PRINT_H
#define GUMBEL_TEXT_JINJA_VALUE_PRINT_H

#include "text/jinja/value/value.h"

#include <jansson.h>

/* Appends str(value). UNSUPPORTED for values whose text would be a memory address or a class name. */
gumbel_status gb_jinja_print(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_buffer *buffer);

/* str(value), without a copy when it is a string already. */
gumbel_status gb_jinja_to_text(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_text *text);

/* The value of a JSON document that outlives the render; its strings are not copied. tainted: they come from
 * the caller, all but the names of roles, which templates make their own markers of. */
gumbel_status gb_jinja_from_json(gb_jinja_state *state, const json_t *json, bool tainted,
                                 gb_jinja_value *value);

/* json.dumps's options of the same names. */
typedef struct gb_jinja_json_style {
    bool pretty; /* indent was given; it then stands before each item once per level */
    gb_jinja_text indent;
    gb_jinja_text item_separator, key_separator;
    bool ascii, sort_keys;
} gb_jinja_json_style;

/* Appends value as json.dumps writes it. FORMAT for a value that JSON does not have. */
gumbel_status gb_jinja_print_json(gb_jinja_state *state, const gb_jinja_value *value,
                                  const gb_jinja_json_style *style, gb_jinja_buffer *buffer);

#endif
