/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of well-formed UTF-8, and what Python's str does with them. Indices that templates see count code
 * points; offsets and lengths here count bytes.
 *
 * A text knows which of its bytes come from the caller's messages: its taint. Slices and copies keep it, so
 * that special tokens can be recognized in what the template wrote and nowhere else.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_TEXT_H
#define GUMBEL_TEXT_JINJA_VALUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Neither is terminated, and neither is ever owned here. */
typedef struct gb_jinja_text {
    const char *bytes;
    size_t length;
    const uint8_t *taint; /* [length] 1: the byte comes from the caller; NULL: none does */
} gb_jinja_text;

#define GB_JINJA_NOT_FOUND SIZE_MAX

/* The text of a zero-terminated string. */
gb_jinja_text gb_jinja_text_of(const char *string);

/* Whether the byte at offset comes from the caller. */
static inline bool gb_jinja_is_tainted(gb_jinja_text text, size_t offset) {
    return text.taint && text.taint[offset];
}

/* length bytes from start. */
gb_jinja_text gb_jinja_text_part(gb_jinja_text text, size_t start, size_t length);

bool gb_jinja_text_equal(gb_jinja_text a, gb_jinja_text b);
bool gb_jinja_text_is(gb_jinja_text text, const char *string);

/* Below, at or above zero as a sorts before, with or after b by code points. */
int gb_jinja_text_compare(gb_jinja_text a, gb_jinja_text b);

/* Where needle first stands at or after start, or last stands; GB_JINJA_NOT_FOUND if nowhere. */
size_t gb_jinja_text_find(gb_jinja_text text, gb_jinja_text needle, size_t start);
size_t gb_jinja_text_find_last(gb_jinja_text text, gb_jinja_text needle);

bool gb_jinja_text_starts_with(gb_jinja_text text, gb_jinja_text start);
bool gb_jinja_text_ends_with(gb_jinja_text text, gb_jinja_text end);

/* How many code points text has. */
size_t gb_jinja_text_count(gb_jinja_text text);

/* The offset of the code point with that index, or text.length past the end. */
size_t gb_jinja_text_offset(gb_jinja_text text, size_t index);

/* The code point at offset, and its bytes in *size. */
uint32_t gb_jinja_text_code_point(gb_jinja_text text, size_t offset, size_t *size);

/* Without the code points of *characters, or with NULL without white space, at its start or end. */
gb_jinja_text gb_jinja_text_strip(gb_jinja_text text, const gb_jinja_text *characters, bool start, bool end);

/* str.isspace of one code point. */
bool gb_jinja_is_space(uint32_t code_point);

/* Where the line that starts at start ends, as str.splitlines has it; *next is where the next one starts. */
size_t gb_jinja_text_line_end(gb_jinja_text text, size_t start, size_t *next);

#endif
