/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes in brackets, and escapes that stand for characters.
 */
#include "grammar/regex/reader.h"

#include <string.h>

/* ---- Classes by a letter ---------------------------------------------------------------------------------
 */

static const gb_character_range digits[] = {{'0', '9'}};
static const gb_character_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const gb_character_range space[] = {
    {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};

static void add_all(gb_ranges *ranges, const gb_character_range *items, size_t count, bool negated) {
    gb_ranges all = {0};
    for (size_t i = 0; i < count; i++)
        gb_add_range(&all, items[i].first, items[i].last);
    if (negated)
        gb_negate_ranges(&all);
    gb_add_ranges(ranges, &all);
    gb_free_ranges(&all);
}

static bool add_lettered(gb_ranges *ranges, uint32_t letter) {
    bool negated = letter >= 'A' && letter <= 'Z';
    switch (negated ? letter + 32 : letter) {
    case 'd':
        add_all(ranges, digits, 1, negated);
        return true;
    case 'w':
        add_all(ranges, word, 4, negated);
        return true;
    case 's':
        add_all(ranges, space, 10, negated);
        return true;
    default:
        return false;
    }
}

/* \p{Name}, \pL, \P{..}: behind the letter. */
static void read_category(gb_regex_reader *reader, bool negated, size_t place, gb_ranges *ranges) {
    size_t start = reader->at, length = 1;
    if (gb_regex_take(reader, '{')) {
        const char *end = memchr(reader->text + reader->at, '}', reader->size - reader->at);
        if (!end) {
            gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "\\p{ has no }");
            return;
        }
        start = reader->at;
        length = (size_t)(end - reader->text) - start;
        reader->at = start + length + 1;
    } else {
        reader->at += reader->at < reader->size;
    }
    gb_ranges all = {0};
    if (start + length > reader->size || !gb_add_category(&all, reader->text + start, length))
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place,
                      "\\p{%.*s} is not supported: only general categories such as L or Lu are",
                      (int)(start + length > reader->size ? 0 : length), reader->text + start);
    if (negated)
        gb_negate_ranges(&all);
    gb_add_ranges(ranges, &all);
    gb_free_ranges(&all);
}

/* ---- One character ---------------------------------------------------------------------------------------
 */

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* count digits, or any number of them in braces. */
static uint32_t read_hexadecimal(gb_regex_reader *reader, unsigned count, size_t place) {
    bool braced = gb_regex_take(reader, '{');
    uint32_t value = 0;
    unsigned read = 0;
    for (; (braced || read < count) && reader->at < reader->size && digit_of(reader->text[reader->at]) >= 0;
         read++)
        value = value > 0x10FFFF ? value : value * 16 + (uint32_t)digit_of(reader->text[reader->at++]);
    bool complete = braced ? gb_regex_take(reader, '}') && read > 0 : read == count;
    if (!complete || value > 0x10FFFF)
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place,
                      "a code point needs %u hexadecimal digits, or some in braces", count);
    return value;
}

/* \u, with the second half of a surrogate pair. */
static uint32_t read_unicode(gb_regex_reader *reader, size_t place) {
    uint32_t high = read_hexadecimal(reader, 4, place);
    if (high < 0xD800 || high > 0xDBFF)
        return high;
    if (!gb_regex_has(reader, "\\u", 2)) {
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "half of a surrogate pair");
        return 0;
    }
    reader->at += 2;
    uint32_t low = read_hexadecimal(reader, 4, place);
    if (low < 0xDC00 || low > 0xDFFF)
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "half of a surrogate pair");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* The character of an escape whose letter was read, or GB_NO_CHARACTER. */
static uint32_t escaped_character(gb_regex_reader *reader, uint32_t letter, bool within_class, size_t place) {
    static const char letters[] = "nrtfv0a", values[] = "\n\r\t\f\v\0\a";
    const char *found = letter && letter < 128 ? strchr(letters, (int)letter) : NULL;
    if (found)
        return (uint32_t)values[found - letters];
    if (letter == 'b' && within_class)
        return '\b';
    if (letter == 'x')
        return read_hexadecimal(reader, 2, place);
    if (letter == 'u')
        return read_unicode(reader, place);
    if (letter == 'U')
        return read_hexadecimal(reader, 8, place);
    if (letter == 'c' && reader->at < reader->size && (reader->text[reader->at] & 0xC0) == 0x40)
        return (uint32_t)reader->text[reader->at++] & 0x1F;
    bool is_letter = (letter >= '0' && letter <= '9') || ((letter | 32) >= 'a' && (letter | 32) <= 'z');
    return is_letter && letter < 128 ? GB_NO_CHARACTER : letter;
}

static void refuse(gb_regex_reader *reader, uint32_t letter, size_t place) {
    if (letter >= '1' && letter <= '9')
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place, "the back reference \\%c is not supported",
                      (char)letter);
    else if (letter == 'k')
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place, "the back reference \\k is not supported");
    else if (letter == 'b' || letter == 'B')
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place, "the word boundary \\%c is not supported",
                      (char)letter);
    else
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "the escape \\%c is not known", (char)letter);
}

void gb_read_escape(gb_regex_reader *reader, bool within_class, gb_ranges *ranges, uint32_t *single) {
    size_t place = reader->at - 1;
    *single = GB_NO_CHARACTER;
    if (reader->at == reader->size) {
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "a backslash at the end");
        return;
    }
    uint32_t letter = gb_regex_next(reader);
    if (add_lettered(ranges, letter))
        return;
    if (letter == 'p' || letter == 'P') {
        read_category(reader, letter == 'P', place, ranges);
        return;
    }
    *single = escaped_character(reader, letter, within_class, place);
    if (*single == GB_NO_CHARACTER)
        refuse(reader, letter, place);
    else
        gb_add_range(ranges, *single, *single);
}

/* ---- Brackets --------------------------------------------------------------------------------------------
 */

/* One item of a class; *single as of gb_read_escape. */
static void read_item(gb_regex_reader *reader, gb_ranges *ranges, uint32_t *single) {
    if (gb_regex_has(reader, "[:", 2))
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, reader->at,
                      "POSIX classes such as [:alpha:] are not supported");
    if (gb_regex_take(reader, '\\')) {
        gb_read_escape(reader, true, ranges, single);
        return;
    }
    *single = gb_regex_next(reader);
    gb_add_range(ranges, *single, *single);
}

/* An item, or a range of two. */
static void read_range(gb_regex_reader *reader, gb_ranges *ranges) {
    uint32_t first, last;
    size_t place = reader->at;
    read_item(reader, ranges, &first);
    bool is_range = reader->at + 1 < reader->size && reader->text[reader->at] == '-' &&
                    reader->text[reader->at + 1] != ']';
    if (!is_range || first == GB_NO_CHARACTER || reader->status != GUMBEL_OK)
        return;
    reader->at++;
    gb_ranges end = {0};
    read_item(reader, &end, &last);
    if (last == GB_NO_CHARACTER || last < first)
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place,
                      "a range that ends before it begins, or at no character");
    else
        gb_add_range(ranges, first, last);
    gb_free_ranges(&end);
}

void gb_read_class(gb_regex_reader *reader, gb_ranges *ranges) {
    size_t place = reader->at - 1;
    bool negated = gb_regex_take(reader, '^');
    while (reader->status == GUMBEL_OK && !gb_regex_take(reader, ']')) {
        if (reader->at == reader->size)
            gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "this [ has no ]");
        else
            read_range(reader, ranges);
    }
    if (negated)
        gb_negate_ranges(ranges);
}
