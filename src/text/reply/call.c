/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/call.h"

#include "base/memory.h"
#include "text/reply/json_text.h"
#include "text/reply/tool_types.h"
#include "text/reply/transform.h"
#include "text/reply/value_parser.h"

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_CALLS = 256 }; /* of one field */

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Adds the groups of the matcher's last match in text to the object. */
static void add_groups(const gb_text_pattern *pattern, const gb_pattern_matcher *matcher, const char *text,
                       json_t *object) {
    const char *name;
    gb_text_match group;
    for (uint32_t i = 0; (name = gb_pattern_group_name(pattern, i)); i++)
        if (gb_pattern_group(pattern, matcher, name, &group))
            json_object_set_new(object, name,
                                json_stringn_nocheck(text + group.start, group.end - group.start));
}

/* What the value, which it takes over, is in the format's shape, added to the list. */
static bool add_shaped(const gb_reply_field *field, const json_t *captures, json_t *value, json_t *list) {
    json_t *scope = json_copy((json_t *)(uintptr_t)captures);
    bool good = false;
    if (!value || !field->transform) {
        good = value && json_array_append(list, value) == 0;
    } else if (!field->transforms_each) {
        json_object_set(scope, "content", value);
        good = json_array_append_new(list, gb_apply_transform(field->transform, scope)) == 0;
    } else {
        good = json_is_array(value) && json_array_size(value) > 0;
        for (size_t i = 0; good && i < json_array_size(value); i++) {
            json_t *item = json_array_get(value, i), *own = json_copy(scope);
            good = json_is_object(item) && json_object_update(own, item) == 0 &&
                   json_array_append_new(list, gb_apply_transform(field->transform, own)) == 0;
            json_decref(own);
        }
    }
    json_decref(scope);
    json_decref(value);
    return good && json_array_size(list) <= MAX_CALLS;
}

/* The field's text as matches of its body pattern, one right behind the other. */
static bool read_bodies(const gumbel_reply *reply, const gb_reply_field *field, const char *text,
                        size_t length, json_t *list) {
    size_t at = 0;
    bool good = length > 0;
    while (good && at < length) {
        const gb_text_match match =
            gb_pattern_find(field->body, reply->matcher, text, length, at, GB_SEARCH_HERE);
        gb_text_match content = {GB_MATCH_FOUND, match.end, match.end};
        if (match.state != GB_MATCH_FOUND || match.end == at)
            return false;
        gb_pattern_group(field->body, reply->matcher, "content", &content);
        json_t *captures = json_copy(reply->captures);
        add_groups(field->body, reply->matcher, text, captures);
        good = add_shaped(
            field, captures,
            gb_parse_value(&field->parser, reply->matcher, text + content.start, content.end - content.start),
            list);
        json_decref(captures);
        at = match.end;
    }
    return good;
}

/* Whether a text that has no closing can be whole. */
static bool may_be_unclosed(const gumbel_reply *reply, const gb_reply_field *field, const char *text,
                            size_t length) {
    if (!field->close)
        return true;
    if (field->unclosed)
        return gb_pattern_find(field->unclosed, reply->matcher, text, length, 0, GB_SEARCH_WHOLE).state ==
               GB_MATCH_FOUND;
    return field->parser.kind == GB_FIELD_JSON && !field->parser.allows_text;
}

static bool read_values(const gumbel_reply *reply, const gb_reply_field *field, size_t end, bool is_closed,
                        json_t *list) {
    const char *text = (const char *)reply->text.raw.data + reply->body;
    const size_t length = end - reply->body;
    if (length > reply->max_call || (!is_closed && !may_be_unclosed(reply, field, text, length)))
        return false;
    if (field->body)
        return read_bodies(reply, field, text, length, list);
    return add_shaped(field, reply->captures, gb_parse_value(&field->parser, reply->matcher, text, length),
                      list);
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

/* The value where it is a text that a C string can carry; else NULL. */
static const char *plain_string(const json_t *value) {
    const char *text = json_string_value(value);
    const size_t length = json_string_length(value);
    return length > 0 && strlen(text) == length ? text : NULL;
}

/* What a call is in any of the shapes that formats give it: name and arguments, by themselves or under
 * "function". Arguments are an object, the text of one, or missing. NULL: it is no call. */
static json_t *arguments_of(const json_t *call, const char **name) {
    const json_t *function = json_object_get(call, "function");
    function = function ? function : call;
    json_t *arguments = json_object_get(function, "arguments");
    *name = plain_string(json_object_get(function, "name"));
    if (!*name)
        return NULL;
    if (!arguments || json_is_null(arguments))
        return json_object();
    if (json_is_string(arguments))
        arguments = json_loadb(json_string_value(arguments), json_string_length(arguments), 0, NULL);
    else
        json_incref(arguments);
    if (json_is_object(arguments))
        return arguments;
    json_decref(arguments);
    return NULL;
}

/* NULL: there is none. */
static const json_t *find_tool(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (strcmp(gb_tool_name(tool), name) == 0)
            return tool;
    }
    return NULL;
}

/* What has no marks is a call by its name alone. Where no grammar can be made for it, it is none of a strict
 * tool, whose arguments are promised. */
static bool may_be_called(const gumbel_reply *reply, const gb_reply_field *field, const char *name) {
    const json_t *tool = find_tool(reply->tools, name);
    return !field->needs_tools || (tool && (field->written.call[0].length > 0 || !gb_is_strict_tool(tool)));
}

static bool are_calls(const gumbel_reply *reply, const gb_reply_field *field, const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name;
        json_t *arguments = arguments_of(json_array_get(list, i), &name);
        if (!arguments)
            return false;
        json_decref(arguments);
        if (!may_be_called(reply, field, name))
            return false;
    }
    return json_array_size(list) > 0;
}

/* The model's own id, or one that prompt, reply and number give. */
static char *id_of(const gumbel_reply *reply, const json_t *call, size_t behind) {
    const char *own = plain_string(json_object_get(call, "id"));
    char made[40];
    if (own)
        return gb_copy_string(own, strlen(own));
    const uint64_t hash = XXH3_64bits_withSeed(reply->text.raw.data, behind, reply->prompt_hash);
    const int length = snprintf(made, sizeof made, "call_%016llx%02x", (unsigned long long)hash,
                                (unsigned)reply->parts.calls);
    return gb_copy_string(made, (size_t)length);
}

static void add_call(gumbel_reply *reply, const gb_reply_field *field, const json_t *call, size_t raw,
                     size_t behind) {
    const char *name;
    gb_byte_buffer text = {0};
    json_t *arguments = arguments_of(call, &name);
    const bool is_text = field->parser.kind == GB_FIELD_TAGS || field->parser.kind == GB_FIELD_LINES;
    gb_type_arguments(reply->tools, name, is_text, arguments);
    gb_append_json(&text, arguments);
    char *id = id_of(reply, call, behind), *copy = gb_copy_string(name, strlen(name));
    reply->parts.failed |= text.failed || !id || !copy;
    gb_add_part(&reply->parts, field, raw, id, copy, &text,
                !reply->tools || find_tool(reply->tools, name) ? NULL : "no tool has this name");
    gb_buffer_free(&text);
    json_decref(arguments);
}

static void add_other(gumbel_reply *reply, const gb_reply_field *field, const json_t *value, size_t raw) {
    gb_byte_buffer text = {0};
    char *name = gb_copy_string(field->name, strlen(field->name));
    if (field->type != GUMBEL_PART_OTHER && json_is_string(value))
        gb_buffer_append(&text, json_string_value(value), json_string_length(value));
    else
        gb_append_json(&text, value);
    reply->parts.failed |= text.failed || !name;
    gb_add_part(&reply->parts, field, raw, NULL, name, &text, NULL);
    gb_buffer_free(&text);
}

bool gb_add_field_parts(gumbel_reply *reply, size_t end, size_t behind, bool is_closed) {
    const gb_reply_field *field = &reply->format->fields[reply->field];
    const bool is_call = field->type == GUMBEL_PART_TOOL_CALL;
    json_t *list = json_array();
    const bool good =
        read_values(reply, field, end, is_closed, list) && (!is_call || are_calls(reply, field, list));
    if (good && behind > reply->begin)
        gb_close_text(&reply->parts);
    for (size_t i = 0; good && behind > reply->begin && i < json_array_size(list); i++) {
        const size_t raw = i == 0 ? reply->opened : behind;
        if (is_call)
            add_call(reply, field, json_array_get(list, i), raw, behind);
        else
            add_other(reply, field, json_array_get(list, i), raw);
    }
    json_decref(list);
    return good;
}
