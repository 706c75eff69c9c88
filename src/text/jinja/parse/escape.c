/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/parse/lexer.h"

#include <string.h>

/* Reads up to most digits of base at literal.bytes + *at; false when there are fewer than least. */
static bool read_code(gb_jinja_text literal, size_t *at, size_t least, size_t most, int base,
                      uint32_t *code) {
    const char digits[] = "0123456789abcdef";
    size_t count = 0;
    *code = 0;
    for (; count < most && *at < literal.length; count++, (*at)++) {
        char c = literal.bytes[*at];
        const char *digit = memchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c, (size_t)base);
        if (!digit)
            break;
        *code = *code * (uint32_t)base + (uint32_t)(digit - digits);
    }
    return count >= least;
}

/* \ooo, \xhh, \uhhhh and \Uhhhhhhhh; *at is at the letter or first digit, and afterwards behind the escape.
 */
static gumbel_status unescape_code(gb_jinja_state *state, gb_jinja_text literal, size_t *at,
                                   gb_jinja_buffer *buffer) {
    size_t start = *at;
    char letter = literal.bytes[start];
    bool octal = letter >= '0' && letter <= '7';
    size_t digits = octal ? 3 : letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    uint32_t code;
    *at += octal ? 0 : 1;
    bool read = read_code(literal, at, octal ? 1 : digits, digits, octal ? 8 : 16, &code);
    if (!read || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        gb_jinja_text escape = gb_jinja_text_part(literal, start, *at - start);
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the escape \\%.*s is not a character",
                             GB_JINJA_SHOWN(escape));
    }
    return gb_jinja_append_code_point(state, buffer, code);
}

/* *at is at the character behind the backslash, and afterwards behind the escape. */
static gumbel_status unescape_one(gb_jinja_state *state, gb_jinja_text literal, size_t *at,
                                  gb_jinja_buffer *buffer) {
    static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
    char letter = literal.bytes[*at];
    const char *known = memchr(letters, letter, sizeof letters - 1);
    if (known) {
        ++*at;
        return gb_jinja_append(state, buffer,
                               (gb_jinja_text){.bytes = meanings + (known - letters), .length = 1});
    }
    if (letter == '\n') { /* a line end that is written but not meant */
        ++*at;
        return GUMBEL_OK;
    }
    if (memchr("01234567xuU", letter, 11))
        return unescape_code(state, literal, at, buffer);
    if (letter == 'N')
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "characters by name (\\N) are not known here");
    return gb_jinja_append_string(state, buffer, "\\"); /* Python keeps the backslash of other escapes */
}

gumbel_status gb_jinja_unescape(gb_jinja_state *state, gb_jinja_text literal, gb_jinja_text *text) {
    gb_jinja_text backslash = gb_jinja_text_of("\\");
    size_t found = gb_jinja_text_find(literal, backslash, 0), at = 0;
    *text = literal;
    if (found == GB_JINJA_NOT_FOUND)
        return GUMBEL_OK;
    gb_jinja_buffer buffer = {0};
    while (found != GB_JINJA_NOT_FOUND) {
        GB_TRY(gb_jinja_append(state, &buffer, gb_jinja_text_part(literal, at, found - at)));
        at = found + 1;
        GB_TRY(unescape_one(state, literal, &at, &buffer));
        found = gb_jinja_text_find(literal, backslash, at);
    }
    GB_TRY(gb_jinja_append(state, &buffer, gb_jinja_text_part(literal, at, literal.length - at)));
    *text = gb_jinja_buffer_text(&buffer);
    return GUMBEL_OK;
}
