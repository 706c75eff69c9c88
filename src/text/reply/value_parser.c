/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/value_parser.h"

#include "base/memory.h"
#include "base/status.h"
#include "text/base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- Reading its description --------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [GB_FIELD_TEXT] = "text",     [GB_FIELD_INTEGER] = "int", [GB_FIELD_FLOAT] = "float",
    [GB_FIELD_BOOLEAN] = "bool",  [GB_FIELD_JSON] = "json",   [GB_FIELD_TAGS] = "xml-inline",
    [GB_FIELD_LINES] = "kv-lines"};

static gumbel_status read_kind(const json_t *kind, const char *where, gb_value_parser *parser,
                               gumbel_error *error) {
    const char *name = kind ? json_string_value(kind) : "text";
    for (size_t i = 0; name && i < sizeof kind_names / sizeof kind_names[0]; i++)
        if (strcmp(name, kind_names[i]) == 0) {
            parser->kind = (gb_field_kind)i;
            return GUMBEL_OK;
        }
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "%s: content is \"%.100s\", expected text, int, float, bool, json, xml-inline or kv-lines",
                   where, name ? name : "not a string");
}

static gumbel_status read_flag(const json_t *arguments, const char *key, const char *where, bool *flag,
                               gumbel_error *error) {
    const json_t *value = json_object_get(arguments, key);
    if (!value)
        return GUMBEL_OK;
    *flag = json_is_true(value);
    return json_is_boolean(value)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s is not true or false", where, key);
}

static gumbel_status read_text(const json_t *arguments, const char *key, const char *where, const char **text,
                               gumbel_error *error) {
    const json_t *value = json_object_get(arguments, key);
    if (!value)
        return GUMBEL_OK;
    if (!json_is_string(value) || json_string_length(value) == 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s is not a string, or empty", where, key);
    *text = json_string_value(value);
    return GUMBEL_OK;
}

static gumbel_status read_marks(const json_t *list, const char *where, gb_json_dialect *dialect,
                                gumbel_error *error) {
    const size_t count = json_array_size(list);
    if (list && (!json_is_array(list) || count > GB_MAX_STRING_MARKS))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: string_delims is not a list of at most %d pairs",
                       where, GB_MAX_STRING_MARKS);
    for (size_t i = 0; i < count; i++) {
        const json_t *open = json_array_get(json_array_get(list, i), 0);
        const json_t *close = json_array_get(json_array_get(list, i), 1);
        if (json_string_length(open) == 0 || json_string_length(close) == 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: string_delims: pair %zu is not two strings",
                           where, i);
        dialect->marks[i].open = json_string_value(open);
        dialect->marks[i].close = json_string_value(close);
    }
    dialect->mark_count = count;
    return GUMBEL_OK;
}

static bool has_group(const gb_text_pattern *pattern, const char *name) {
    const char *group;
    for (uint32_t i = 0; (group = gb_pattern_group_name(pattern, i)); i++)
        if (strcmp(group, name) == 0)
            return true;
    return false;
}

static gumbel_status read_tag(const json_t *arguments, const char *where, gb_value_parser *parser,
                              gumbel_error *error) {
    const char *expression = NULL;
    GB_TRY(read_text(arguments, "tag_pattern", where, &expression, error));
    if (!expression)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: xml-inline without tag_pattern", where);
    GB_TRY(gb_pattern_create(expression, where, &parser->tag, error));
    return has_group(parser->tag, "key")
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tag_pattern has no group \"key\"", where);
}

static gumbel_status read_parser(const json_t *kind, const json_t *arguments, const char *where, int depth,
                                 gb_value_parser *parser, gumbel_error *error);

static gumbel_status read_inner(const json_t *inner, const char *where, int depth, gb_value_parser *parser,
                                gumbel_error *error) {
    if (!inner || json_is_null(inner))
        return GUMBEL_OK;
    if (!json_is_object(inner) || depth + 1 == GB_MAX_VALUE_PARSERS)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: value_parser is no object, or has too many within it",
                       where);
    parser->inner = gb_allocate(1, sizeof *parser->inner);
    if (!parser->inner)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a reply format");
    return read_parser(json_object_get(inner, "name"), json_object_get(inner, "args"), where, depth + 1,
                       parser->inner, error);
}

static gumbel_status read_parser(const json_t *kind, const json_t *arguments, const char *where, int depth,
                                 gb_value_parser *parser, gumbel_error *error) {
    parser->strips = true;
    parser->line_separator = "\n";
    parser->key_separator = ":";
    if (arguments && !json_is_object(arguments))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: the arguments of content are not an object", where);
    GB_TRY(read_kind(kind, where, parser, error));
    GB_TRY(read_flag(arguments, "strip", where, &parser->strips, error));
    GB_TRY(read_flag(arguments, "unquoted_keys", where, &parser->dialect.unquoted_keys, error));
    GB_TRY(read_flag(arguments, "allow_non_json", where, &parser->allows_text, error));
    GB_TRY(read_flag(arguments, "merge_duplicates", where, &parser->merges, error));
    GB_TRY(read_flag(arguments, "strict", where, &parser->is_strict, error));
    GB_TRY(read_text(arguments, "line_sep", where, &parser->line_separator, error));
    GB_TRY(read_text(arguments, "kv_sep", where, &parser->key_separator, error));
    GB_TRY(read_marks(json_object_get(arguments, "string_delims"), where, &parser->dialect, error));
    if (parser->kind == GB_FIELD_TAGS)
        GB_TRY(read_tag(arguments, where, parser, error));
    return read_inner(json_object_get(arguments, "value_parser"), where, depth, parser, error);
}

gumbel_status gb_read_value_parser(const json_t *kind, const json_t *arguments, const char *where,
                                   gb_value_parser *parser, gumbel_error *error) {
    return read_parser(kind, arguments, where, 0, parser, error);
}

void gb_value_parser_free(gb_value_parser *parser) {
    gb_pattern_destroy(parser->tag);
    if (parser->inner)
        gb_value_parser_free(parser->inner);
    gb_free(parser->inner);
    *parser = (gb_value_parser){0};
}

/* ---- Using it ------------------------------------------------------------------------------------------ */

/* Narrows the text by white space, if the parser does that. */
static gb_text_match strip(const gb_value_parser *parser, const char *text, size_t length) {
    gb_text_match part = {GB_MATCH_FOUND, 0, length};
    if (parser->strips && length > 0)
        gb_utf8_strip(text, &part.start, &part.end);
    return part;
}

static json_t *text_value(const gb_value_parser *parser, const char *text, size_t length) {
    const gb_text_match part = strip(parser, text, length);
    return json_stringn_nocheck(text + part.start, part.end - part.start);
}

static json_t *number_value(const gb_value_parser *parser, const char *text, size_t length) {
    const gb_text_match part = strip(parser, text, length);
    json_t *number = json_loadb(text + part.start, part.end - part.start, JSON_DECODE_ANY, NULL);
    if (parser->kind == GB_FIELD_INTEGER ? json_is_integer(number) : json_is_number(number))
        return number;
    json_decref(number);
    return NULL;
}

static json_t *boolean_value(const gb_value_parser *parser, const char *text, size_t length) {
    const gb_text_match part = strip(parser, text, length);
    const size_t size = part.end - part.start;
    return json_boolean((size == 4 && strncasecmp(text + part.start, "true", 4) == 0) ||
                        (size == 1 && text[part.start] == '1'));
}

static json_t *json_value(const gb_value_parser *parser, const char *text, size_t length) {
    json_t *value = gb_read_lenient_json(&parser->dialect, text, length);
    return value || !parser->allows_text ? value : text_value(parser, text, length);
}

static json_t *inner_value(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                           size_t length) {
    return parser->inner ? gb_parse_value(parser->inner, matcher, text, length)
                         : json_stringn_nocheck(text, length);
}

/* Puts the value, which it takes over, under the key. */
static bool set_member(const gb_value_parser *parser, json_t *object, const char *key, size_t length,
                       json_t *value) {
    json_t *present = parser->merges ? json_object_getn(object, key, length) : NULL;
    if (json_is_array(present))
        return json_array_append_new(present, value) == 0;
    if (present) {
        json_t *list = json_array();
        json_array_append(list, present);
        json_array_append_new(list, value);
        value = list;
    }
    return json_object_setn_new(object, key, length, value) == 0;
}

static bool is_space(const char *text, size_t start, size_t end) {
    if (end > start)
        gb_utf8_strip(text, &start, &end);
    return start == end;
}

/* One tag, found by the matcher's last search. */
static bool add_tag(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                    json_t *object) {
    gb_text_match key, value;
    if (!gb_pattern_group(parser->tag, matcher, "key", &key) ||
        memchr(text + key.start, 0, key.end - key.start))
        return false;
    if (!gb_pattern_group(parser->tag, matcher, "value", &value))
        value = (gb_text_match){GB_MATCH_FOUND, key.end, key.end};
    json_t *read = inner_value(parser, matcher, text + value.start, value.end - value.start);
    return read && set_member(parser, object, text + key.start, key.end - key.start, read);
}

static json_t *tags_value(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                          size_t length) {
    json_t *object = json_object();
    bool good = object != NULL;
    size_t at = 0;
    while (good) {
        const gb_text_match tag = gb_pattern_find(parser->tag, matcher, text, length, at, GB_SEARCH_WHOLE);
        good = tag.state != GB_MATCH_FAILED && (!parser->is_strict || is_space(text, at, tag.start));
        if (!good || tag.state == GB_MATCH_NONE)
            break;
        good = tag.end > at && add_tag(parser, matcher, text, object);
        at = tag.end;
    }
    if (good)
        return object;
    json_decref(object);
    return NULL;
}

static size_t find(const char *text, size_t start, size_t end, const char *what) {
    const size_t length = strlen(what);
    for (size_t at = start; at + length <= end; at++)
        if (memcmp(text + at, what, length) == 0)
            return at;
    return end;
}

static bool add_line(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                     size_t length, json_t *object) {
    const size_t separator = find(text, 0, length, parser->key_separator);
    if (separator == length)
        return true;
    const size_t behind = separator + strlen(parser->key_separator);
    const gb_text_match key = strip(parser, text, separator);
    const gb_text_match value = strip(parser, text + behind, length - behind);
    json_t *read = inner_value(parser, matcher, text + behind + value.start, value.end - value.start);
    if (!read || memchr(text + key.start, 0, key.end - key.start)) {
        json_decref(read);
        return false;
    }
    return json_object_setn_new(object, text + key.start, key.end - key.start, read) == 0;
}

static json_t *lines_value(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                           size_t length) {
    json_t *object = json_object();
    bool good = object != NULL;
    for (size_t at = 0; good && at < length;) {
        const size_t end = find(text, at, length, parser->line_separator);
        const gb_text_match line = strip(parser, text + at, end - at);
        good = add_line(parser, matcher, text + at + line.start, line.end - line.start, object);
        at = end + strlen(parser->line_separator);
    }
    if (good)
        return object;
    json_decref(object);
    return NULL;
}

json_t *gb_parse_value(const gb_value_parser *parser, gb_pattern_matcher *matcher, const char *text,
                       size_t length) {
    switch (parser->kind) {
    case GB_FIELD_TEXT:
        return text_value(parser, text, length);
    case GB_FIELD_INTEGER:
    case GB_FIELD_FLOAT:
        return number_value(parser, text, length);
    case GB_FIELD_BOOLEAN:
        return boolean_value(parser, text, length);
    case GB_FIELD_JSON:
        return json_value(parser, text, length);
    case GB_FIELD_TAGS:
        return tags_value(parser, matcher, text, length);
    case GB_FIELD_LINES:
        return lines_value(parser, matcher, text, length);
    }
    return NULL;
}
