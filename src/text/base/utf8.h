/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 as the Unicode Standard defines it (chapter 3, table 3-7): no overlong forms, no surrogates, nothing
 * above U+10FFFF. What is ill-formed is replaced by U+FFFD, one for each maximal subpart, which is what
 * Python's errors="replace" and the WHATWG decoder do.
 */
#ifndef GUMBEL_TEXT_BASE_UTF8_H
#define GUMBEL_TEXT_BASE_UTF8_H

#include "base/byte_buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GB_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

typedef enum gb_utf8_state {
    GB_UTF8_CHARACTER, /* a whole character */
    GB_UTF8_PARTIAL,   /* the text ends within a character that was well-formed so far */
    GB_UTF8_BROKEN     /* a maximal ill-formed subpart */
} gb_utf8_state;

/* Looks at the first bytes of text (length >= 1). *size is how many bytes the character or ill-formed part
 * has, 1 to 4. */
gb_utf8_state gb_utf8_next(const char *text, size_t length, size_t *size);

/* The character of the size well-formed bytes at text. */
uint32_t gb_utf8_code_point(const char *text, size_t size);

/* Bytes of the character that begins with this byte of well-formed text. */
static inline size_t gb_utf8_size(char first) {
    uint8_t byte = (uint8_t)first;
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool gb_utf8_is_valid(const char *text, size_t length);

/* Appends text with every ill-formed part replaced. */
void gb_utf8_append_repaired(gb_byte_buffer *buffer, const char *text, size_t length);

/* White space as Unicode and Rust's char::is_whitespace have it. */
bool gb_is_white_space(uint32_t code_point);

/* Narrows [*start, *end) of well-formed text so that it neither begins nor ends in white space, in the sense
 * of Python's str.strip, which is what Jinja's trim filter calls (U+001C to U+001F count as well). */
void gb_utf8_strip(const char *text, size_t *start, size_t *end);

#endif
