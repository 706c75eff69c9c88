/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/string/json_string.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/rewrite.h"
#include "grammar/schema/string/pattern.h"

#include <stdio.h>
#include <string.h>

enum { LAST_CHARACTER = 0x10FFFF };

/* The spelling of a character that cannot stand in a string as it is; "" of one that can. */
static void spell(const gb_schema_reader *reader, uint32_t character, char text[8]) {
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    text[0] = 0;
    if (reader->strings->is_raw)
        return;
    for (const char *at = letters; *at; at += 2)
        if ((uint8_t)at[0] == character) {
            snprintf(text, 8, "\\%c", at[1]);
            return;
        }
    if (character < 0x20)
        snprintf(text, 8, "\\u%04x", character);
}

static bool has(const gb_character_range *ranges, size_t count, uint32_t character) {
    for (size_t i = 0; i < count; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

/* Characters that stand in strings as they are. */
static const gb_character_range quoted_ranges[] = {
    {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, LAST_CHARACTER}};
static const gb_character_range raw_ranges[] = {{'\t', '\n'}, {0x20, LAST_CHARACTER}};

/* The parts of a range whose characters are not spelled otherwise. */
static size_t cut_range(const gb_schema_reader *reader, gb_character_range range,
                        gb_character_range parts[3]) {
    const bool is_raw = reader->strings->is_raw;
    const gb_character_range *ranges = is_raw ? raw_ranges : quoted_ranges;
    const size_t range_count = is_raw ? 2 : 3;
    size_t count = 0;
    for (size_t i = 0; i < range_count; i++) {
        const uint32_t first = range.first > ranges[i].first ? range.first : ranges[i].first;
        const uint32_t last = range.last < ranges[i].last ? range.last : ranges[i].last;
        if (first <= last)
            parts[count++] = (gb_character_range){first, last};
    }
    return count;
}

gb_expression gb_express_plain(gb_schema_reader *reader, const gb_character_range *ranges, size_t count) {
    gb_expression items[40];
    size_t item_count = 0, kept_count = 0;
    gb_character_range *kept = gb_allocate(count * 3, sizeof *kept);
    if (!kept)
        return gb_schema_no_memory(reader);
    for (size_t i = 0; i < count; i++)
        kept_count += cut_range(reader, ranges[i], kept + kept_count);
    if (kept_count)
        items[item_count++] = gb_express_characters(reader->expressions, kept, kept_count);
    gb_free(kept);
    for (uint32_t character = 0; character <= '\\'; character++) {
        char text[8];
        if (!has(ranges, count, character))
            continue;
        spell(reader, character, text);
        if (text[0])
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

/* One character in any spelling. */
static gb_expression free_character(gb_schema_reader *reader) {
    gb_expression escapes[9];
    if (reader->strings->is_raw)
        return gb_express_characters(reader->expressions, raw_ranges, 2);
    for (size_t i = 0; i < 8; i++) {
        const char text[] = {'\\', "\"\\/bfnrt"[i], 0};
        escapes[i] = gb_literal(reader, text);
    }
    escapes[8] = unicode_escape(reader);
    return GB_EITHER(reader, gb_express_characters(reader->expressions, quoted_ranges, 3),
                     gb_either(reader, escapes, 9));
}

/* ---- What strings may not have in them ----------------------------------------------------------------- */

gb_expression gb_express_reserved(gb_schema_reader *reader, const json_t *texts) {
    static const uint32_t every_byte[8] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    const size_t count = json_array_size(texts);
    if (count == 0)
        return 0;
    const gb_expression any = gb_express_repeat(
        reader->expressions, gb_express_byte_set(reader->expressions, every_byte), 0, GB_NO_END);
    gb_expression reserved = reader->nothing;
    for (size_t i = 0; i < count; i++)
        reserved =
            GB_EITHER(reader, reserved, gb_literal(reader, json_string_value(json_array_get(texts, i))));
    return GB_JOIN(reader, any, reserved, any);
}

bool gb_has_reserved(const gb_schema_reader *reader, const char *text, size_t length) {
    const json_t *texts = reader->options.form ? reader->options.form->reserved : NULL;
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const char *sought = json_string_value(json_array_get(texts, i));
        const size_t size = strlen(sought);
        for (size_t at = 0; at + size <= length; at++)
            if (memcmp(text + at, sought, size) == 0)
                return true;
    }
    return false;
}

static gb_expression without_reserved(gb_schema_reader *reader, gb_expression content) {
    return reader->reserved ? gb_express_except(reader->expressions, content, reader->reserved) : content;
}

/* Any number of characters. */
static gb_expression any_characters(gb_schema_reader *reader, gb_expression character) {
    return gb_express_repeat(reader->expressions, character, 0, GB_NO_END);
}

void gb_express_strings(gb_schema_reader *reader, gb_strings *strings) {
    const gb_character_range all = {0, LAST_CHARACTER};
    reader->strings = strings;
    strings->free_character = free_character(reader);
    strings->plain_character = gb_express_plain(reader, &all, 1);
    strings->free_string =
        gb_quoted(reader, without_reserved(reader, any_characters(reader, strings->free_character)));
}

/* ---- Strings ------------------------------------------------------------------------------------------- */

void gb_spell(const gb_schema_reader *reader, const char *text, size_t length, gb_byte_buffer *spelled) {
    size_t begin = 0;
    for (size_t i = 0; i < length; i++) {
        char escape[8];
        spell(reader, (uint8_t)text[i], escape);
        if (!escape[0])
            continue;
        gb_buffer_append(spelled, text + begin, i - begin);
        gb_buffer_append(spelled, escape, strlen(escape));
        begin = i + 1;
    }
    gb_buffer_append(spelled, text + begin, length - begin);
}

gb_expression gb_express_plain_text(gb_schema_reader *reader, const char *text, size_t length) {
    gb_byte_buffer spelled = {0};
    gb_spell(reader, text, length, &spelled);
    const gb_expression content = spelled.failed
                                      ? gb_schema_no_memory(reader)
                                      : gb_express_bytes(reader->expressions, spelled.data, spelled.size);
    gb_buffer_free(&spelled);
    return content;
}

gb_expression gb_quoted(gb_schema_reader *reader, gb_expression content) {
    return GB_JOIN(reader, reader->strings->open, content, reader->strings->close);
}

/* One of the strings of enum or const; `nothing` of another value. */
static gb_expression excluded_string(gb_schema_reader *reader, const json_t *value) {
    return json_is_string(value)
               ? gb_express_plain_text(reader, json_string_value(value), json_string_length(value))
               : reader->nothing;
}

static gb_expression excluded_list(gb_schema_reader *reader, const json_t *values) {
    gb_value_parts parts = {0};
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!gb_parts_add(reader, &parts, excluded_string(reader, json_array_get(values, i))))
            break;
    return gb_parts_either(reader, &parts);
}

/* What `not` leaves out. */
static gb_expression excluded_strings(gb_schema_reader *reader, const json_t *schema) {
    const json_t *excluded = gb_excluded(schema);
    const json_t *values = json_object_get(excluded, "enum"), *value = json_object_get(excluded, "const");
    gb_expression out = value ? excluded_string(reader, value) : excluded_list(reader, values);
    if (json_object_get(excluded, "pattern")) {
        const json_t *pattern = gb_keyword_string(reader, excluded, "pattern");
        return gb_express_pattern_of(reader, excluded, "pattern", pattern);
    }
    if (json_object_get(excluded, "format")) {
        const json_t *format = gb_keyword_string(reader, excluded, "format");
        out = gb_express_format(reader, excluded, format ? json_string_value(format) : "", true);
        return out ? out
                   : gb_express_repeat(reader->expressions, reader->strings->plain_character, 0, GB_NO_END);
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

static gb_expression express_matching(gb_schema_reader *reader, const gb_terms *terms, bool *is_asked) {
    gb_expression content =
        gb_express_repeat(reader->expressions, reader->strings->plain_character, 0, GB_NO_END);
    for (size_t i = 0; i < terms->count && !gb_schema_failed(reader); i++) {
        const json_t *schema = terms->items[i];
        const json_t *pattern = gb_keyword_string(reader, schema, "pattern");
        const json_t *format = gb_keyword_string(reader, schema, "format");
        if (pattern)
            content =
                narrow(reader, content, gb_express_pattern_of(reader, schema, "pattern", pattern), is_asked);
        if (format)
            content = narrow(reader, content,
                             gb_express_format(reader, schema, json_string_value(format), false), is_asked);
        const gb_expression excluded = excluded_strings(reader, schema);
        if (excluded != reader->nothing) {
            content = gb_express_except(reader->expressions, content, excluded);
            *is_asked = true;
        }
    }
    return content;
}

gb_expression gb_express_matching(gb_schema_reader *reader, const gb_terms *terms, bool *is_asked) {
    *is_asked = false;
    gb_terms_map *known = &reader->matching[reader->strings == &reader->bare];
    uint32_t *found = gb_terms_map_at(known, terms);
    if (!found)
        return gb_schema_no_memory(reader);
    if (*found == 0) {
        const gb_expression matching = express_matching(reader, terms, is_asked);
        if (!(found = gb_terms_map_at(known, terms)))
            return gb_schema_no_memory(reader);
        *found = matching * 2 + *is_asked;
    }
    *is_asked = *found % 2;
    return *found / 2;
}

/* Characters between quotes, of a limited length. An intersection with a repeat of characters counts these.
 */
static gb_expression count_characters(gb_schema_reader *reader, gb_expression content,
                                      gb_expression character, gb_counts length) {
    const gb_expression counted =
        gb_express_repeat(reader->expressions, character, length.least, length.most);
    return content ? gb_express_both(reader->expressions, content, counted) : counted;
}

gb_expression gb_express_string(gb_schema_reader *reader, const gb_terms *terms, bool is_plain) {
    const gb_counts length = gb_read_counts(reader, terms, "minLength", "maxLength");
    bool is_asked;
    gb_expression content = gb_express_matching(reader, terms, &is_asked);
    const gb_expression character =
        is_asked || is_plain ? reader->strings->plain_character : reader->strings->free_character;
    if (length.most < length.least)
        return reader->nothing;
    if (!is_asked)
        content = any_characters(reader, character);
    content = without_reserved(reader, content);
    if (length.least == 0 && length.most == GB_NO_END)
        return is_asked || is_plain ? gb_quoted(reader, content) : reader->strings->free_string;
    if (!is_asked && !reader->reserved)
        content = 0;
    return gb_quoted(reader, count_characters(reader, content, character, length));
}
