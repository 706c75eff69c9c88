/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/number.h"
#include "text/jinja/value/print.h"
#include "text/jinja/value/sort.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Templates write a role into their own markers, as in "<|" + role + "|>". */
static bool is_role(const char *key, const json_t *value) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    for (size_t i = 0; strcmp(key, "role") == 0 && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(json_string_value(value), roles[i]) == 0)
            return json_string_length(value) == strlen(roles[i]);
    return false;
}

static gumbel_status string_from_json(gb_jinja_state *state, const char *bytes, size_t length, bool tainted,
                                      gb_jinja_value *value) {
    gb_jinja_text text = {.bytes = bytes, .length = length};
    if (tainted && length > 0) {
        gumbel_status status;
        uint8_t *taint = gb_jinja_allocate(state, length, 1, &status);
        if (!taint)
            return status;
        memset(taint, 1, length);
        text.taint = taint;
    }
    *value = gb_jinja_string(text);
    return GUMBEL_OK;
}

static gumbel_status array_from_json(gb_jinja_state *state, const json_t *json, bool tainted,
                                     gb_jinja_array *array) {
    for (size_t i = 0; i < json_array_size(json); i++) {
        gb_jinja_value item;
        GB_TRY(gb_jinja_from_json(state, json_array_get(json, i), tainted, &item));
        GB_TRY(gb_jinja_push(state, array, item));
    }
    return GUMBEL_OK;
}

/* The keys of a JSON object differ, so that none needs to be looked for. */
static gumbel_status dict_from_json(gb_jinja_state *state, json_t *json, bool tainted, gb_jinja_dict *dict) {
    gumbel_status status;
    dict->capacity = json_object_size(json);
    dict->entries = gb_jinja_allocate(state, dict->capacity, sizeof *dict->entries, &status);
    if (!dict->entries)
        return status;
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *item = json_object_iter_value(at);
        gb_jinja_entry *entry = &dict->entries[dict->count++];
        bool item_tainted = tainted && !(json_is_string(item) && is_role(name, item));
        GB_TRY(string_from_json(state, name, json_object_iter_key_len(at), tainted, &entry->key));
        GB_TRY(gb_jinja_from_json(state, item, item_tainted, &entry->value));
        if (entry->value.kind == GB_JINJA_LIST)
            entry->value.as.array->is_content = strcmp(name, "content") == 0;
        if (entry->value.kind == GB_JINJA_DICT)
            entry->value.as.dict->is_arguments = strcmp(name, "arguments") == 0;
    }
    return GUMBEL_OK;
}

/* Only reads the JSON; jansson's iterators want it without const. */
static gumbel_status container_from_json(gb_jinja_state *state, const json_t *json, bool tainted,
                                         gb_jinja_value *value) {
    GB_TRY(gb_jinja_enter(state));
    if (json_is_array(json)) {
        *value = (gb_jinja_value){.kind = GB_JINJA_LIST};
        GB_TRY(gb_jinja_new_array(state, &value->as.array));
        GB_TRY(array_from_json(state, json, tainted, value->as.array));
    } else {
        *value = (gb_jinja_value){.kind = GB_JINJA_DICT};
        GB_TRY(gb_jinja_new_dict(state, &value->as.dict));
        GB_TRY(dict_from_json(state, (json_t *)(uintptr_t)json, tainted, value->as.dict));
    }
    gb_jinja_leave(state);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_from_json(gb_jinja_state *state, const json_t *json, bool tainted,
                                 gb_jinja_value *value) {
    switch (json_typeof(json)) {
    case JSON_STRING:
        return string_from_json(state, json_string_value(json), json_string_length(json), tainted, value);
    case JSON_INTEGER:
        *value = gb_jinja_integer(json_integer_value(json));
        return GUMBEL_OK;
    case JSON_REAL:
        *value = gb_jinja_float(json_real_value(json));
        return GUMBEL_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *value = gb_jinja_boolean(json_is_true(json));
        return GUMBEL_OK;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return container_from_json(state, json, tainted, value);
    default:
        *value = gb_jinja_none();
        return GUMBEL_OK;
    }
}

/* What json.dumps escapes: the characters JSON must, and with ensure_ascii everything outside ASCII. */
static gumbel_status print_character(gb_jinja_state *state, uint32_t code_point, gb_jinja_text character,
                                     bool ascii, gb_jinja_buffer *buffer) {
    static const char *const short_forms[] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r",
        ['\t'] = "\\t", ['\b'] = "\\b",  ['\f'] = "\\f",
    };
    if (code_point < sizeof short_forms / sizeof *short_forms && short_forms[code_point])
        return gb_jinja_append_string(state, buffer, short_forms[code_point]);
    if (code_point >= 0x20 && (code_point < 0x80 || !ascii) && !(ascii && code_point == 0x7F))
        return gb_jinja_append(state, buffer, character);
    if (code_point < 0x10000)
        return gb_jinja_append_format(state, buffer, "\\u%04x", code_point);
    uint32_t above = code_point - 0x10000;
    return gb_jinja_append_format(state, buffer, "\\u%04x\\u%04x", 0xD800 + (above >> 10),
                                  0xDC00 + (above & 0x3FF));
}

static gumbel_status print_string(gb_jinja_state *state, gb_jinja_text text, bool ascii,
                                  gb_jinja_buffer *buffer) {
    GB_TRY(gb_jinja_append_string(state, buffer, "\""));
    size_t size;
    for (size_t offset = 0; offset < text.length; offset += size) {
        uint32_t code_point = gb_jinja_text_code_point(text, offset, &size);
        gb_jinja_text character = gb_jinja_text_part(text, offset, size);
        buffer->taints = gb_jinja_is_tainted(character, 0);
        GB_TRY(print_character(state, code_point, character, ascii, buffer));
    }
    buffer->taints = false;
    return gb_jinja_append_string(state, buffer, "\"");
}

static gumbel_status print_scalar(gb_jinja_state *state, const gb_jinja_value *value, bool ascii,
                                  gb_jinja_buffer *buffer) {
    switch (value->kind) {
    case GB_JINJA_NONE:
        return gb_jinja_append_string(state, buffer, "null");
    case GB_JINJA_BOOLEAN:
        return gb_jinja_append_string(state, buffer, value->as.boolean ? "true" : "false");
    case GB_JINJA_INTEGER:
        return gb_jinja_append_format(state, buffer, "%" PRId64, value->as.integer);
    case GB_JINJA_FLOAT:
        if (isfinite(value->as.real))
            return gb_jinja_append_float(state, buffer, value->as.real);
        return gb_jinja_append_string(state, buffer,
                                      isnan(value->as.real)  ? "NaN"
                                      : value->as.real > 0.0 ? "Infinity"
                                                             : "-Infinity");
    case GB_JINJA_STRING:
        return print_string(state, value->as.text, ascii, buffer);
    default:
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s cannot be written as JSON",
                             gb_jinja_type_name(value));
    }
}

/* JSON's keys are strings: other scalars are quoted. */
static gumbel_status print_key(gb_jinja_state *state, const gb_jinja_value *key, bool ascii,
                               gb_jinja_buffer *buffer) {
    if (key->kind == GB_JINJA_STRING)
        return print_string(state, key->as.text, ascii, buffer);
    GB_TRY(gb_jinja_append_string(state, buffer, "\""));
    GB_TRY(print_scalar(state, key, ascii, buffer));
    return gb_jinja_append_string(state, buffer, "\"");
}

static gumbel_status print_value(gb_jinja_state *state, const gb_jinja_value *value,
                                 const gb_jinja_json_style *style, size_t level, gb_jinja_buffer *buffer);

static gumbel_status new_line(gb_jinja_state *state, const gb_jinja_json_style *style, size_t level,
                              gb_jinja_buffer *buffer) {
    if (!style->pretty)
        return GUMBEL_OK;
    GB_TRY(gb_jinja_append_string(state, buffer, "\n"));
    for (size_t i = 0; i < level; i++)
        GB_TRY(gb_jinja_append(state, buffer, style->indent));
    return GUMBEL_OK;
}

static gumbel_status print_array(gb_jinja_state *state, const gb_jinja_array *array,
                                 const gb_jinja_json_style *style, size_t level, gb_jinja_buffer *buffer) {
    GB_TRY(gb_jinja_append_string(state, buffer, "["));
    for (size_t i = 0; i < array->count; i++) {
        if (i > 0)
            GB_TRY(gb_jinja_append(state, buffer, style->item_separator));
        GB_TRY(new_line(state, style, level + 1, buffer));
        GB_TRY(print_value(state, &array->items[i], style, level + 1, buffer));
    }
    if (array->count)
        GB_TRY(new_line(state, style, level, buffer));
    return gb_jinja_append_string(state, buffer, "]");
}

static gumbel_status sorted_entries(gb_jinja_state *state, const gb_jinja_dict *dict,
                                    const gb_jinja_entry **entries) {
    gumbel_status status;
    gb_jinja_entry *copy = gb_jinja_allocate(state, dict->count, sizeof *copy, &status);
    if (!copy)
        return status;
    for (size_t i = 0; i < dict->count; i++)
        copy[i] = dict->entries[i];
    *entries = copy;
    return gb_jinja_sort(state, copy, dict->count, false);
}

static gumbel_status print_dict(gb_jinja_state *state, const gb_jinja_dict *dict,
                                const gb_jinja_json_style *style, size_t level, gb_jinja_buffer *buffer) {
    const gb_jinja_entry *entries = dict->entries;
    if (style->sort_keys)
        GB_TRY(sorted_entries(state, dict, &entries));
    GB_TRY(gb_jinja_append_string(state, buffer, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i > 0)
            GB_TRY(gb_jinja_append(state, buffer, style->item_separator));
        GB_TRY(new_line(state, style, level + 1, buffer));
        GB_TRY(print_key(state, &entries[i].key, style->ascii, buffer));
        GB_TRY(gb_jinja_append(state, buffer, style->key_separator));
        GB_TRY(print_value(state, &entries[i].value, style, level + 1, buffer));
    }
    if (dict->count)
        GB_TRY(new_line(state, style, level, buffer));
    return gb_jinja_append_string(state, buffer, "}");
}

static gumbel_status print_value(gb_jinja_state *state, const gb_jinja_value *value,
                                 const gb_jinja_json_style *style, size_t level, gb_jinja_buffer *buffer) {
    GB_TRY(gb_jinja_enter(state));
    if (value->kind == GB_JINJA_DICT)
        GB_TRY(print_dict(state, value->as.dict, style, level, buffer));
    else if (value->kind == GB_JINJA_LIST || value->kind == GB_JINJA_TUPLE)
        GB_TRY(print_array(state, value->as.array, style, level, buffer));
    else
        GB_TRY(print_scalar(state, value, style->ascii, buffer));
    gb_jinja_leave(state);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_print_json(gb_jinja_state *state, const gb_jinja_value *value,
                                  const gb_jinja_json_style *style, gb_jinja_buffer *buffer) {
    return print_value(state, value, style, 0, buffer);
}
