/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/print.h"

#include "text/jinja/value/number.h"

#include <inttypes.h>
#include <utf8proc.h>

static gumbel_status represent(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_buffer *buffer);

/* str.isprintable of one code point. */
static bool is_printable(uint32_t code_point) {
    if (code_point == ' ')
        return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code_point);
    return category < UTF8PROC_CATEGORY_ZS && category != UTF8PROC_CATEGORY_CN;
}

static gumbel_status append_escaped(gb_jinja_state *state, gb_jinja_buffer *buffer, uint32_t code_point) {
    switch (code_point) {
    case '\n':
        return gb_jinja_append_string(state, buffer, "\\n");
    case '\r':
        return gb_jinja_append_string(state, buffer, "\\r");
    case '\t':
        return gb_jinja_append_string(state, buffer, "\\t");
    default:
        return gb_jinja_append_format(state, buffer,
                                      code_point < 0x100     ? "\\x%02x"
                                      : code_point < 0x10000 ? "\\u%04x"
                                                             : "\\U%08x",
                                      code_point);
    }
}

static gumbel_status represent_string(gb_jinja_state *state, gb_jinja_text text, gb_jinja_buffer *buffer) {
    bool single = gb_jinja_text_find(text, gb_jinja_text_of("'"), 0) != GB_JINJA_NOT_FOUND;
    bool twice = gb_jinja_text_find(text, gb_jinja_text_of("\""), 0) != GB_JINJA_NOT_FOUND;
    char quote = single && !twice ? '"' : '\'';
    GB_TRY(gb_jinja_append(state, buffer, (gb_jinja_text){.bytes = &quote, .length = 1}));
    size_t size;
    for (size_t offset = 0; offset < text.length; offset += size) {
        uint32_t code_point = gb_jinja_text_code_point(text, offset, &size);
        buffer->taints = gb_jinja_is_tainted(text, offset);
        if (code_point == '\\' || code_point == (uint32_t)quote)
            GB_TRY(gb_jinja_append_string(state, buffer, "\\"));
        if (is_printable(code_point))
            GB_TRY(gb_jinja_append(state, buffer, gb_jinja_text_part(text, offset, size)));
        else
            GB_TRY(append_escaped(state, buffer, code_point));
    }
    buffer->taints = false;
    return gb_jinja_append(state, buffer, (gb_jinja_text){.bytes = &quote, .length = 1});
}

static gumbel_status represent_array(gb_jinja_state *state, const gb_jinja_value *value,
                                     gb_jinja_buffer *buffer) {
    bool tuple = value->kind == GB_JINJA_TUPLE;
    const gb_jinja_array *array = value->as.array;
    state->printed_structure |= array->is_content;
    GB_TRY(gb_jinja_append_string(state, buffer, tuple ? "(" : "["));
    for (size_t i = 0; i < array->count; i++) {
        if (i > 0)
            GB_TRY(gb_jinja_append_string(state, buffer, ", "));
        GB_TRY(represent(state, &array->items[i], buffer));
    }
    return gb_jinja_append_string(state, buffer, !tuple ? "]" : array->count == 1 ? ",)" : ")");
}

static gumbel_status represent_dict(gb_jinja_state *state, const gb_jinja_dict *dict,
                                    gb_jinja_buffer *buffer) {
    state->printed_structure |= dict->is_arguments;
    GB_TRY(gb_jinja_append_string(state, buffer, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i > 0)
            GB_TRY(gb_jinja_append_string(state, buffer, ", "));
        GB_TRY(represent(state, &dict->entries[i].key, buffer));
        GB_TRY(gb_jinja_append_string(state, buffer, ": "));
        GB_TRY(represent(state, &dict->entries[i].value, buffer));
    }
    return gb_jinja_append_string(state, buffer, "}");
}

static gumbel_status represent_container(gb_jinja_state *state, const gb_jinja_value *value,
                                         gb_jinja_buffer *buffer) {
    GB_TRY(gb_jinja_enter(state));
    if (value->kind == GB_JINJA_DICT)
        GB_TRY(represent_dict(state, value->as.dict, buffer));
    else
        GB_TRY(represent_array(state, value, buffer));
    gb_jinja_leave(state);
    return GUMBEL_OK;
}

static gumbel_status represent(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_buffer *buffer) {
    switch (value->kind) {
    case GB_JINJA_UNDEFINED:
        return gb_jinja_append_string(state, buffer, "Undefined");
    case GB_JINJA_NONE:
        return gb_jinja_append_string(state, buffer, "None");
    case GB_JINJA_BOOLEAN:
        return gb_jinja_append_string(state, buffer, value->as.boolean ? "True" : "False");
    case GB_JINJA_INTEGER:
        return gb_jinja_append_format(state, buffer, "%" PRId64, value->as.integer);
    case GB_JINJA_FLOAT:
        return gb_jinja_append_float(state, buffer, value->as.real);
    case GB_JINJA_STRING:
        if (!value->markup)
            return represent_string(state, value->as.text, buffer);
        GB_TRY(gb_jinja_append_string(state, buffer, "Markup("));
        GB_TRY(represent_string(state, value->as.text, buffer));
        return gb_jinja_append_string(state, buffer, ")");
    case GB_JINJA_LIST:
    case GB_JINJA_TUPLE:
    case GB_JINJA_DICT:
        return represent_container(state, value, buffer);
    default:
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "a value of type %s cannot be printed",
                             gb_jinja_type_name(value));
    }
}

gumbel_status gb_jinja_print(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_buffer *buffer) {
    if (value->kind == GB_JINJA_STRING)
        return gb_jinja_append(state, buffer, value->as.text);
    if (value->kind == GB_JINJA_UNDEFINED)
        return GUMBEL_OK;
    return represent(state, value, buffer);
}

gumbel_status gb_jinja_to_text(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_text *text) {
    if (value->kind == GB_JINJA_STRING) {
        *text = value->as.text;
        return GUMBEL_OK;
    }
    gb_jinja_buffer buffer = {0};
    GB_TRY(gb_jinja_print(state, value, &buffer));
    *text = gb_jinja_buffer_text(&buffer);
    return GUMBEL_OK;
}
