/* SPDX-License-Identifier: Apache-2.0
 *
 * Literals, classes of characters and tokens.
 */
#include "base/byte_buffer.h"
#include "grammar/gbnf/reader.h"
#include "grammar/regex/ranges.h"
#include "text/base/utf8.h"

#include <string.h>

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static uint32_t read_hexadecimal(gb_gbnf_reader *reader, unsigned count, size_t place) {
    uint32_t value = 0;
    for (unsigned i = 0; i < count; i++) {
        int digit = reader->at < reader->size ? digit_of(reader->text[reader->at]) : -1;
        if (digit < 0) {
            gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "this escape needs %u hexadecimal digits",
                         count);
            return 0;
        }
        value = value * 16 + (uint32_t)digit;
        reader->at++;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "U+%04X is no character", value);
    return value;
}

/* Behind a backslash. */
static uint32_t read_escape(gb_gbnf_reader *reader) {
    size_t place = reader->at - 1;
    char letter = reader->at < reader->size ? reader->text[reader->at++] : '\0';
    switch (letter) {
    case 'x':
        return read_hexadecimal(reader, 2, place);
    case 'u':
        return read_hexadecimal(reader, 4, place);
    case 'U':
        return read_hexadecimal(reader, 8, place);
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'n':
        return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^':
        return (uint32_t)letter;
    default:
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place,
                     "this escape is not known: \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\] are");
        return 0;
    }
}

/* One character, perhaps escaped. */
static uint32_t read_character(gb_gbnf_reader *reader) {
    if (gb_gbnf_take(reader, '\\'))
        return read_escape(reader);
    size_t length = gb_utf8_size(reader->text[reader->at]);
    uint32_t character = gb_utf8_code_point(reader->text + reader->at, length);
    reader->at += length;
    return character;
}

static void append_character(gb_byte_buffer *bytes, uint32_t c) {
    uint8_t coded[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size; i-- > 1; c >>= 6)
        coded[i] = (uint8_t)(0x80 | (c & 0x3F));
    coded[0] = (uint8_t)(leads[size] | c);
    gb_buffer_append(bytes, coded, size);
}

gb_expression gb_read_literal(gb_gbnf_reader *reader) {
    size_t place = reader->at++;
    gb_byte_buffer bytes = {0};
    while (reader->status == GUMBEL_OK && !gb_gbnf_take(reader, '"')) {
        if (reader->at == reader->size || gb_gbnf_is_at(reader, '\n'))
            gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "this \" has no end on its line");
        else
            append_character(&bytes, read_character(reader));
    }
    if (bytes.failed)
        gb_gbnf_fail(reader, GUMBEL_ERROR_MEMORY, place, "no memory");
    gb_expression literal =
        reader->status == GUMBEL_OK ? gb_express_bytes(reader->expressions, bytes.data, bytes.size) : 0;
    gb_buffer_free(&bytes);
    return literal;
}

/* ---- Classes ---------------------------------------------------------------------------------------------
 */

static void read_range(gb_gbnf_reader *reader, gb_ranges *ranges) {
    size_t place = reader->at;
    uint32_t first = read_character(reader), last = first;
    bool is_range =
        gb_gbnf_is_at(reader, '-') && reader->at + 1 < reader->size && reader->text[reader->at + 1] != ']';
    if (is_range) {
        reader->at++;
        last = read_character(reader);
    }
    if (last < first)
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "a range that ends before it begins");
    else
        gb_add_range(ranges, first, last);
}

gb_expression gb_read_gbnf_class(gb_gbnf_reader *reader) {
    size_t place = reader->at++;
    bool negated = gb_gbnf_take(reader, '^');
    gb_ranges ranges = {0};
    while (reader->status == GUMBEL_OK && !gb_gbnf_take(reader, ']')) {
        if (reader->at == reader->size)
            gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "this [ has no ]");
        else
            read_range(reader, &ranges);
    }
    if (negated)
        gb_negate_ranges(&ranges);
    if (ranges.failed)
        gb_gbnf_fail(reader, GUMBEL_ERROR_MEMORY, place, "no memory");
    gb_expression read = 0;
    if (reader->status == GUMBEL_OK)
        read = gb_express_characters(reader->expressions, ranges.items, ranges.count);
    gb_free_ranges(&ranges);
    return read;
}

/* ---- Tokens ----------------------------------------------------------------------------------------------
 */

/* <[id]>: the id. */
static int64_t read_id(const char *spelling, size_t length) {
    int64_t id = 0;
    if (length < 5 || spelling[1] != '[' || spelling[length - 2] != ']')
        return -1;
    for (size_t i = 2; i < length - 2; i++) {
        if (spelling[i] < '0' || spelling[i] > '9' || id > INT32_MAX)
            return -1;
        id = id * 10 + (spelling[i] - '0');
    }
    return id <= INT32_MAX ? id : -1;
}

gb_expression gb_read_gbnf_token(gb_gbnf_reader *reader) {
    size_t place = reader->at;
    bool negated = gb_gbnf_take(reader, '!');
    const char *spelling = reader->text + reader->at;
    const char *end = memchr(spelling, '>', reader->size - reader->at);
    if (!gb_gbnf_is_at(reader, '<') || !end || memchr(spelling, '\n', (size_t)(end - spelling))) {
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "a token is <[id]> or <spelling> on one line");
        return 0;
    }
    size_t length = (size_t)(end - spelling) + 1;
    int64_t id = read_id(spelling, length);
    if (id < 0 && reader->options->find_token)
        id = reader->options->find_token(reader->options->user, spelling, length);
    if (id < 0) {
        gb_gbnf_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place, "the vocabulary has no token %.*s", (int)length,
                     spelling);
        return 0;
    }
    reader->at += length;
    return negated ? gb_express_other_token(reader->expressions, (uint32_t)id)
                   : gb_express_token(reader->expressions, (uint32_t)id);
}
