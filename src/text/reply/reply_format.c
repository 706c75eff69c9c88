/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/reply_format.h"

#include "base/memory.h"
#include "base/status.h"
#include "text/reply/transform.h"
#include "text/reply/value_parser.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WHERE = 128, MAX_NAME = 64 };

/* ---- Keys ---------------------------------------------------------------------------------------------- */

/* Refuses keys that are not in the list, which ends in NULL. */
static gumbel_status check_keys(const json_t *object, const char *where, const char *const *keys,
                                gumbel_error *error) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (!keys[i])
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: \"%.64s\" is not a key of it", where, key);
    }
    return GUMBEL_OK;
}

static gumbel_status read_expression(const json_t *object, const char *key, const char *where,
                                     gb_text_pattern **pattern, gumbel_error *error) {
    const json_t *value = json_object_get(object, key);
    char what[MAX_WHERE + 32];
    if (!value)
        return GUMBEL_OK;
    snprintf(what, sizeof what, "%s: %.24s", where, key);
    return json_is_string(value) ? gb_pattern_create(json_string_value(value), what, pattern, error)
                                 : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s is not a string", what);
}

/* A delimiter: literals, or a regular expression under the other key. */
static gumbel_status read_delimiter(const json_t *object, const char *key, const char *pattern_key,
                                    const char *where, gb_text_pattern **pattern, gumbel_error *error) {
    const json_t *literals = json_object_get(object, key);
    char what[MAX_WHERE + 32];
    if (!literals)
        return read_expression(object, pattern_key, where, pattern, error);
    if (json_object_get(object, pattern_key))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: has %s and %s, expected one of them", where, key,
                       pattern_key);
    snprintf(what, sizeof what, "%s: %.24s", where, key);
    return gb_pattern_create_literals(literals, what, pattern, error);
}

static gumbel_status read_flag(const json_t *object, const char *key, const char *where, bool *flag,
                               gumbel_error *error) {
    const json_t *value = json_object_get(object, key);
    *flag = json_is_true(value);
    return !value || json_is_boolean(value)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s is not true or false", where, key);
}

/* ---- Fields -------------------------------------------------------------------------------------------- */

static gumbel_part_type type_of(const char *name) {
    static const struct {
        const char *name;
        gumbel_part_type type;
    } known[] = {{"content", GUMBEL_PART_CONTENT},      {"reasoning_content", GUMBEL_PART_REASONING},
                 {"thinking", GUMBEL_PART_REASONING},   {"reasoning", GUMBEL_PART_REASONING},
                 {"tool_calls", GUMBEL_PART_TOOL_CALL}, {"plain_calls", GUMBEL_PART_TOOL_CALL}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].type;
    return GUMBEL_PART_OTHER;
}

static gumbel_status read_delimiters(const json_t *object, const char *where, gb_reply_field *field,
                                     gumbel_error *error) {
    GB_TRY(read_delimiter(object, "open", "open_pattern", where, &field->open, error));
    GB_TRY(read_delimiter(object, "close", "close_pattern", where, &field->close, error));
    GB_TRY(read_expression(object, "begin_pattern", where, &field->begin, error));
    GB_TRY(read_expression(object, "body_pattern", where, &field->body, error));
    return read_expression(object, "unclosed_pattern", where, &field->unclosed, error);
}

static gumbel_status read_shape(const json_t *object, const char *where, gb_reply_field *field,
                                gumbel_error *error) {
    const json_t *join = json_object_get(object, "join");
    field->join = field->type == GUMBEL_PART_OTHER ? "" : "\n\n";
    if (join && !json_is_string(join))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: join is not a string", where);
    if (join)
        field->join = json_string_value(join);
    field->transform = json_object_get(object, "transform");
    GB_TRY(read_flag(object, "transform_each", where, &field->transforms_each, error));
    if (field->transforms_each && !field->transform)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: transform_each without transform", where);
    return field->transform ? gb_check_transform(field->transform, where, error) : GUMBEL_OK;
}

/* What else may stand in a field: it is taken as transformers takes it, or means nothing here. */
static const char *const field_keys[] = {"open",
                                         "open_pattern",
                                         "close",
                                         "close_pattern",
                                         "content",
                                         "content_args",
                                         "repeats",
                                         "join",
                                         "optional",
                                         "transform",
                                         "transform_each",
                                         "body_pattern",
                                         "unclosed_pattern",
                                         "within",
                                         "ends",
                                         "written",
                                         "begin_pattern",
                                         "leads",
                                         "needs_tools",
                                         NULL};

/* Calls in JSON are objects, lists of them, or texts; others begin as their format says. */
static gumbel_status read_begin(const char *where, gb_reply_field *field, gumbel_error *error) {
    const bool is_json = field->parser.kind == GB_FIELD_JSON && !field->parser.allows_text;
    if (field->type != GUMBEL_PART_TOOL_CALL || field->begin || field->body || !is_json)
        return GUMBEL_OK;
    return gb_pattern_create("\\s*[\\[{\"]", where, &field->begin, error);
}

static gumbel_status read_field(const char *name, const json_t *object, const char *source,
                                gb_reply_field *field, gumbel_error *error) {
    char where[MAX_WHERE];
    snprintf(where, sizeof where, "%.48s: %.48s", source, name);
    if (!json_is_object(object) || strlen(name) > MAX_NAME)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s is not an object, or its name too long", where);
    GB_TRY(check_keys(object, where, field_keys, error));
    field->name = name;
    field->type = type_of(name);
    GB_TRY(read_delimiters(object, where, field, error));
    GB_TRY(gb_read_value_parser(json_object_get(object, "content"), json_object_get(object, "content_args"),
                                where, &field->parser, error));
    GB_TRY(read_shape(object, where, field, error));
    if (json_object_get(object, "written"))
        GB_TRY(gb_read_call_form(json_object_get(object, "written"), field->parser.kind == GB_FIELD_TAGS,
                                 where, &field->written, error));
    const bool is_text = field->type == GUMBEL_PART_CONTENT || field->type == GUMBEL_PART_REASONING;
    field->is_streamed = is_text && field->parser.kind == GB_FIELD_TEXT && !field->transform && !field->body;
    if (field->begin && field->is_streamed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: a text has begin_pattern", where);
    GB_TRY(read_flag(object, "leads", where, &field->leads, error));
    GB_TRY(read_flag(object, "needs_tools", where, &field->needs_tools, error));
    return read_begin(where, field, error);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static int find_field(const gb_reply_format *format, const char *name) {
    for (int i = 0; name && i < format->field_count; i++)
        if (strcmp(format->fields[i].name, name) == 0)
            return i;
    return -1;
}

/* A list of fields' names as bits. streamed: they must be of the kind whose text is given out as it comes. */
static gumbel_status read_field_set(const gb_reply_format *format, const gb_reply_field *field,
                                    const json_t *names, bool streamed, uint32_t *set, gumbel_error *error) {
    if (names && !json_is_array(names))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: within or ends is not a list", field->name);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const int number = find_field(format, name);
        if (number < 0 || format->fields[number].is_streamed != streamed)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s names \"%.64s\", expected a field that is %s",
                           field->name, streamed ? "within" : "ends", name ? name : "not a string",
                           streamed ? "text" : "not text");
        *set |= 1U << number;
    }
    return GUMBEL_OK;
}

/* Fields within others are read whole, so that there is always just one text to go back to. */
static gumbel_status read_nesting(gb_reply_format *format, const json_t *fields, gumbel_error *error) {
    for (int i = 0; i < format->field_count; i++) {
        gb_reply_field *field = &format->fields[i];
        const json_t *object = json_object_get(fields, field->name);
        GB_TRY(read_field_set(format, field, json_object_get(object, "within"), true, &field->within, error));
        GB_TRY(read_field_set(format, field, json_object_get(object, "ends"), false, &field->ends, error));
        if ((field->within || field->ends) && (field->is_streamed || !field->open))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: a text has within or ends", field->name);
    }
    return GUMBEL_OK;
}

static gumbel_status read_fields(gb_reply_format *format, const json_t *fields, const char *name,
                                 gumbel_error *error) {
    const char *key;
    json_t *value;
    const size_t count = json_object_size(fields);
    if (count == 0 || count > GB_MAX_REPLY_FIELDS)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: fields is not an object of 1 to %d members", name,
                       GB_MAX_REPLY_FIELDS);
    json_object_foreach((json_t *)(uintptr_t)fields, key, value) {
        gb_reply_field *field = &format->fields[format->field_count++];
        GB_TRY(read_field(key, value, name, field, error));
        if (field->open)
            continue;
        if (format->rest >= 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "%s: %s and %s have no open, expected one field without", name,
                           format->fields[format->rest].name, key);
        format->rest = format->field_count - 1;
    }
    if (format->rest >= 0 && !format->fields[format->rest].is_streamed)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s has no open, and is no text", name,
                       format->fields[format->rest].name);
    return read_nesting(format, fields, error);
}

static gumbel_status fill(gb_reply_format *format, const char *name, gumbel_error *error) {
    static const char *const keys[] = {
        "version", "defaults", "fields", "start_anchor", "start_anchor_pattern", "stray", NULL};
    const json_t *source = format->source, *version = json_object_get(source, "version");
    if (!json_is_object(source))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: not an object", name);
    if (version && json_integer_value(version) != 1)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: version is not 1", name);
    GB_TRY(check_keys(source, name, keys, error));
    GB_TRY(read_fields(format, json_object_get(source, "fields"), name, error));
    GB_TRY(read_delimiter(source, "start_anchor", "start_anchor_pattern", name, &format->anchor, error));
    return json_object_get(source, "stray")
               ? gb_pattern_create_literals(json_object_get(source, "stray"), name, &format->stray, error)
               : GUMBEL_OK;
}

gumbel_status gb_reply_format_create(const char *text, size_t length, const char *name,
                                     gb_reply_format **format, gumbel_error *error) {
    json_error_t reason;
    *format = NULL;
    if (length > GB_MAX_REPLY_FORMAT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %zu bytes, expected at most %d", name, length,
                       GB_MAX_REPLY_FORMAT);
    gb_reply_format *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a reply format");
    created->rest = -1;
    created->source = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    gumbel_status status = created->source ? fill(created, name, error)
                                           : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: line %d, column %d: %s",
                                                     name, reason.line, reason.column, reason.text);
    if (status == GUMBEL_OK)
        *format = created;
    else
        gb_reply_format_destroy(created);
    return status;
}

void gb_reply_format_destroy(gb_reply_format *format) {
    if (!format)
        return;
    for (int i = 0; i < format->field_count; i++) {
        gb_reply_field *field = &format->fields[i];
        gb_text_pattern *const patterns[] = {field->open, field->close, field->begin, field->body,
                                             field->unclosed};
        for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++)
            gb_pattern_destroy(patterns[k]);
        gb_value_parser_free(&field->parser);
    }
    gb_pattern_destroy(format->anchor);
    gb_pattern_destroy(format->stray);
    json_decref(format->source);
    gb_free(format);
}

bool gb_reply_format_mentions(const gb_reply_format *format, const char *text, size_t length) {
    bool mentions = (format->anchor && gb_pattern_mentions(format->anchor, text, length)) ||
                    (format->stray && gb_pattern_mentions(format->stray, text, length));
    for (int i = 0; i < format->field_count && !mentions; i++) {
        const gb_reply_field *field = &format->fields[i];
        mentions = (field->open && gb_pattern_mentions(field->open, text, length)) ||
                   (field->close && gb_pattern_mentions(field->close, text, length));
    }
    return mentions;
}
