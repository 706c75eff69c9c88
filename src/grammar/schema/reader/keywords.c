/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/keywords.h"

#include <math.h>
#include <string.h>

static gb_keyword_kind kind_in(unsigned draft, gb_keyword_kind kind, unsigned first_draft) {
    if (kind == GB_KEYWORD_DRAFT_3)
        return draft == 3 ? GB_KEYWORD_REFUSED : GB_KEYWORD_UNKNOWN;
    return first_draft <= draft ? kind : GB_KEYWORD_UNKNOWN;
}

gb_keyword_kind gb_keyword_kind_of(const gb_schema_reader *reader, const char *keyword) {
    static const struct {
        const char *name;
        gb_keyword_kind kind;
        unsigned draft;
    } keywords[] = {
#define GB_KEYWORD(name, kind, draft) {name, GB_KEYWORD_##kind, draft},
#include "grammar/schema/reader/keywords.def"
#undef GB_KEYWORD
    };
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (keywords[i].name[0] == keyword[0] && strcmp(keywords[i].name, keyword) == 0)
            return kind_in(reader->draft, keywords[i].kind, keywords[i].draft);
    return strncmp(keyword, "x-", 2) == 0 ? GB_KEYWORD_ANNOTATION : GB_KEYWORD_UNKNOWN;
}

bool gb_reference_stands_alone(const gb_schema_reader *reader, const json_t *schema) {
    return reader->draft <= 7 && json_is_string(json_object_get(schema, "$ref"));
}

/* A keyword that cannot be honoured, with a value that asks nothing. */
static bool is_neutral(const char *keyword, const json_t *value) {
    return strcmp(keyword, "$recursiveAnchor") == 0 && json_is_false(value);
}

static bool has_zero(const json_t *value) {
    const char *key;
    json_t *member;
    bool has = json_is_string(value) && strlen(json_string_value(value)) < json_string_length(value);
    for (size_t i = 0; !has && i < json_array_size(value); i++)
        has = has_zero(json_array_get(value, i));
    json_object_foreach(gb_mutable(value), key, member) has |= !json_is_object(member) && has_zero(member);
    return has;
}

/* Names are read up to their first U+0000. */
static bool check_names(gb_schema_reader *reader, const json_t *schema) {
    static const char *const keywords[] = {"required",     "type",        "format", "dependentRequired",
                                           "dependencies", "$dynamicRef", "$ref",   "$schema"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (has_zero(json_object_get(schema, keywords[i])))
            gb_schema_fail(reader, schema, keywords[i], GUMBEL_ERROR_FORMAT, "a name with U+0000 in it");
    return !gb_schema_failed(reader);
}

bool gb_check_keywords(gb_schema_reader *reader, const json_t *schema, bool *asserts) {
    const char *key;
    json_t *value;
    *asserts = false;
    json_object_foreach(gb_mutable(schema), key, value) {
        const gb_keyword_kind kind = gb_keyword_kind_of(reader, key);
        *asserts |= kind == GB_KEYWORD_ASSERTION || kind == GB_KEYWORD_UNKNOWN;
        if (kind == GB_KEYWORD_REFUSED && !is_neutral(key, value))
            gb_schema_fail(reader, schema, key, GUMBEL_ERROR_UNSUPPORTED, "this keyword cannot be honoured");
    }
    return check_names(reader, schema);
}

static const json_t *keyword_of(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                                bool is_right, const char *expected) {
    const json_t *value = json_object_get(schema, keyword);
    if (value && !is_right)
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected %s", expected);
    return is_right ? value : NULL;
}

const json_t *gb_keyword_object(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    return keyword_of(reader, schema, keyword, json_is_object(json_object_get(schema, keyword)), "an object");
}

const json_t *gb_keyword_array(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    return keyword_of(reader, schema, keyword, json_is_array(json_object_get(schema, keyword)), "an array");
}

const json_t *gb_keyword_string(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    return keyword_of(reader, schema, keyword, json_is_string(json_object_get(schema, keyword)), "a string");
}

const json_t *gb_keyword_number(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    return keyword_of(reader, schema, keyword, json_is_number(json_object_get(schema, keyword)), "a number");
}

/* absent: the value of a keyword that is not there. */
static uint32_t read_count(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                           uint32_t absent) {
    const json_t *value = json_object_get(schema, keyword);
    const double count = json_number_value(value);
    if (!value)
        return absent;
    if (!json_is_number(value) || count < 0 || count != floor(count)) {
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected a count, 0 or more");
        return absent;
    }
    return count < (double)GB_NO_END ? (uint32_t)count : GB_NO_END;
}

gb_counts gb_read_counts(gb_schema_reader *reader, const gb_terms *terms, const char *least,
                         const char *most) {
    gb_counts counts = {0, GB_NO_END};
    for (size_t i = 0; i < terms->count; i++) {
        const uint32_t low = read_count(reader, terms->items[i], least, 0);
        const uint32_t high = read_count(reader, terms->items[i], most, GB_NO_END);
        counts.least = low > counts.least ? low : counts.least;
        counts.most = high < counts.most ? high : counts.most;
    }
    return counts;
}
