/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/json_string.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "grammar/schema/keywords.h"
#include "grammar/schema/pattern.h"
#include "grammar/schema/rewrite.h"

#include <stdio.h>
#include <string.h>

enum { LAST_CHARACTER = 0x10FFFF };

/* The spelling of a character that cannot stand in a string as it is; "" of one that can. */
static void spell(uint32_t character, char text[8]) {
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (const char *at = letters; *at; at += 2)
        if ((uint8_t)at[0] == character) {
            snprintf(text, 8, "\\%c", at[1]);
            return;
        }
    text[0] = 0;
    if (character < 0x20)
        snprintf(text, 8, "\\u%04x", character);
}

static bool has(const gb_character_range *ranges, size_t count, uint32_t character) {
    for (size_t i = 0; i < count; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

/* The parts of a range between the characters that are spelled. */
static size_t cut_range(gb_character_range range, gb_character_range parts[4]) {
    static const uint32_t cuts[] = {0x1F, '"', '\\', LAST_CHARACTER + 1};
    size_t count = 0;
    uint32_t from = 0;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const uint32_t first = range.first > from ? range.first : from;
        const uint32_t last = range.last < cuts[i] - 1 ? range.last : cuts[i] - 1;
        if (i > 0 && first <= last)
            parts[count++] = (gb_character_range){first, last};
        from = cuts[i] + 1;
    }
    return count;
}

gb_expression gb_express_plain(gb_schema_reader *reader, const gb_character_range *ranges, size_t count) {
    gb_expression items[40];
    size_t item_count = 0, kept_count = 0;
    gb_character_range *kept = gb_allocate(count * 4, sizeof *kept);
    if (!kept)
        return gb_schema_no_memory(reader);
    for (size_t i = 0; i < count; i++)
        kept_count += cut_range(ranges[i], kept + kept_count);
    if (kept_count)
        items[item_count++] = gb_express_characters(reader->expressions, kept, kept_count);
    gb_free(kept);
    for (uint32_t character = 0; character <= '\\'; character++) {
        char text[8];
        spell(character, text);
        if (text[0] && has(ranges, count, character))
            items[item_count++] = gb_literal(reader, text);
    }
    return gb_either(reader, items, item_count);
}

static gb_expression hexadecimal(gb_schema_reader *reader, const char *ranges) {
    gb_character_range characters[6];
    size_t count = 0;
    for (; ranges[0]; ranges += 2)
        characters[count++] = (gb_character_range){(uint32_t)ranges[0], (uint32_t)ranges[1]};
    return gb_express_characters(reader->expressions, characters, count);
}

/* \uXXXX: no surrogate, or a pair of them. */
static gb_expression unicode_escape(gb_schema_reader *reader) {
    const gb_expression mark = gb_literal(reader, "\\u"), any = hexadecimal(reader, "09afAF");
    const gb_expression d = hexadecimal(reader, "ddDD");
    return GB_EITHER(reader, GB_JOIN(reader, mark, hexadecimal(reader, "09acefACEF"), any, any, any),
                     GB_JOIN(reader, mark, d, hexadecimal(reader, "07"), any, any),
                     GB_JOIN(reader, mark, d, hexadecimal(reader, "89abAB"), any, any, mark, d,
                             hexadecimal(reader, "cfCF"), any, any));
}

gb_expression gb_express_free_character(gb_schema_reader *reader) {
    const gb_character_range plain[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, LAST_CHARACTER}};
    gb_expression escapes[9];
    for (size_t i = 0; i < 8; i++) {
        const char text[] = {'\\', "\"\\/bfnrt"[i], 0};
        escapes[i] = gb_literal(reader, text);
    }
    escapes[8] = unicode_escape(reader);
    return GB_EITHER(reader, gb_express_characters(reader->expressions, plain, 3),
                     gb_either(reader, escapes, 9));
}

gb_expression gb_express_plain_text(gb_schema_reader *reader, const char *text, size_t length) {
    gb_byte_buffer spelled = {0};
    for (size_t i = 0; i < length; i++) {
        char escape[8];
        spell((uint8_t)text[i], escape);
        gb_buffer_append(&spelled, escape[0] ? escape : text + i, escape[0] ? strlen(escape) : 1);
    }
    const gb_expression content = spelled.failed
                                      ? gb_schema_no_memory(reader)
                                      : gb_express_bytes(reader->expressions, spelled.data, spelled.size);
    gb_buffer_free(&spelled);
    return content;
}

gb_expression gb_quoted(gb_schema_reader *reader, gb_expression content) {
    const gb_expression quote = gb_literal(reader, "\"");
    return GB_JOIN(reader, quote, content, quote);
}

/* One of the strings of enum or const; `nothing` of another value. */
static gb_expression excluded_string(gb_schema_reader *reader, const json_t *value) {
    return json_is_string(value)
               ? gb_express_plain_text(reader, json_string_value(value), json_string_length(value))
               : reader->nothing;
}

/* What `not` leaves out. */
static gb_expression excluded_strings(gb_schema_reader *reader, const json_t *schema) {
    const json_t *excluded = gb_excluded(schema);
    const json_t *values = json_object_get(excluded, "enum"), *value = json_object_get(excluded, "const");
    gb_expression out = value ? excluded_string(reader, value) : reader->nothing;
    for (size_t i = 0; i < json_array_size(values); i++)
        out = GB_EITHER(reader, out, excluded_string(reader, json_array_get(values, i)));
    if (json_object_get(excluded, "pattern")) {
        const json_t *pattern = gb_keyword_string(reader, excluded, "pattern");
        return gb_express_pattern(reader, excluded, "pattern", pattern ? json_string_value(pattern) : "");
    }
    if (json_object_get(excluded, "format")) {
        const json_t *format = gb_keyword_string(reader, excluded, "format");
        out = gb_express_format(reader, excluded, format ? json_string_value(format) : "");
        return out ? out : gb_express_repeat(reader->expressions, reader->plain_character, 0, GB_NO_END);
    }
    return out;
}

static gb_expression narrow(gb_schema_reader *reader, gb_expression content, gb_expression asked,
                            bool *is_asked) {
    if (!asked)
        return content;
    *is_asked = true;
    return gb_express_both(reader->expressions, content, asked);
}

gb_expression gb_express_matching(gb_schema_reader *reader, const gb_terms *terms, bool *is_asked) {
    gb_expression content = gb_express_repeat(reader->expressions, reader->plain_character, 0, GB_NO_END);
    *is_asked = false;
    for (size_t i = 0; i < terms->count && !gb_schema_failed(reader); i++) {
        const json_t *schema = terms->items[i];
        const json_t *pattern = gb_keyword_string(reader, schema, "pattern");
        const json_t *format = gb_keyword_string(reader, schema, "format");
        if (pattern)
            content =
                narrow(reader, content,
                       gb_express_pattern(reader, schema, "pattern", json_string_value(pattern)), is_asked);
        if (format)
            content = narrow(reader, content, gb_express_format(reader, schema, json_string_value(format)),
                             is_asked);
        const gb_expression excluded = excluded_strings(reader, schema);
        if (excluded != reader->nothing) {
            content = gb_express_except(reader->expressions, content, excluded);
            *is_asked = true;
        }
    }
    return content;
}

gb_expression gb_express_string(gb_schema_reader *reader, const gb_terms *terms, bool is_plain) {
    const gb_counts length = gb_read_counts(reader, terms, "minLength", "maxLength");
    bool is_asked;
    const gb_expression content = gb_express_matching(reader, terms, &is_asked);
    const gb_expression character = is_asked || is_plain ? reader->plain_character : reader->free_character;
    if (length.most < length.least)
        return reader->nothing;
    if (is_asked && length.least == 0 && length.most == GB_NO_END)
        return gb_quoted(reader, content);
    const gb_expression counted =
        gb_express_repeat(reader->expressions, character, length.least, length.most);
    return gb_quoted(reader, is_asked ? gb_express_both(reader->expressions, content, counted) : counted);
}
