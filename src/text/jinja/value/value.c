/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/value.h"

#include <string.h>

gb_jinja_value gb_jinja_undefined(gb_jinja_text name) {
    return (gb_jinja_value){.kind = GB_JINJA_UNDEFINED, .as.text = name};
}

gb_jinja_value gb_jinja_none(void) {
    return (gb_jinja_value){.kind = GB_JINJA_NONE};
}

gb_jinja_value gb_jinja_boolean(bool boolean) {
    return (gb_jinja_value){.kind = GB_JINJA_BOOLEAN, .as.boolean = boolean};
}

gb_jinja_value gb_jinja_integer(int64_t integer) {
    return (gb_jinja_value){.kind = GB_JINJA_INTEGER, .as.integer = integer};
}

gb_jinja_value gb_jinja_float(double real) {
    return (gb_jinja_value){.kind = GB_JINJA_FLOAT, .as.real = real};
}

gb_jinja_value gb_jinja_string(gb_jinja_text text) {
    return (gb_jinja_value){.kind = GB_JINJA_STRING, .as.text = text};
}

gb_jinja_value gb_jinja_array_value(gb_jinja_kind kind, gb_jinja_array *array) {
    return (gb_jinja_value){.kind = kind, .as.array = array};
}

const char *gb_jinja_type_name(const gb_jinja_value *value) {
    static const char *const names[] = {
        [GB_JINJA_ABSENT] = "nothing",      [GB_JINJA_UNDEFINED] = "undefined", [GB_JINJA_NONE] = "none",
        [GB_JINJA_BOOLEAN] = "bool",        [GB_JINJA_INTEGER] = "int",         [GB_JINJA_FLOAT] = "float",
        [GB_JINJA_STRING] = "str",          [GB_JINJA_LIST] = "list",           [GB_JINJA_TUPLE] = "tuple",
        [GB_JINJA_VIEW] = "dict view",      [GB_JINJA_ITERATOR] = "generator",  [GB_JINJA_DICT] = "dict",
        [GB_JINJA_NAMESPACE] = "namespace", [GB_JINJA_LOOP] = "loop",           [GB_JINJA_MACRO] = "macro",
        [GB_JINJA_FUNCTION] = "function",   [GB_JINJA_METHOD] = "method",
    };
    return names[value->kind];
}

/* Makes room for one more item of item_size bytes. */
static gumbel_status grow(gb_jinja_state *state, void **items, size_t count, size_t *capacity,
                          size_t item_size) {
    if (count < *capacity)
        return GUMBEL_OK;
    size_t larger = *capacity ? 2 * *capacity : 4;
    gumbel_status status;
    void *grown = gb_jinja_allocate(state, larger, item_size, &status);
    if (!grown)
        return status;
    if (count)
        memcpy(grown, *items, count * item_size);
    *items = grown;
    *capacity = larger;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_new_array(gb_jinja_state *state, gb_jinja_array **array) {
    gumbel_status status;
    *array = gb_jinja_allocate(state, 1, sizeof **array, &status);
    return status;
}

gumbel_status gb_jinja_push(gb_jinja_state *state, gb_jinja_array *array, gb_jinja_value item) {
    void *items = array->items;
    GB_TRY(grow(state, &items, array->count, &array->capacity, sizeof *array->items));
    array->items = items;
    array->items[array->count++] = item;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_pair(gb_jinja_state *state, gb_jinja_value first, gb_jinja_value second,
                            gb_jinja_value *pair) {
    gb_jinja_array *array;
    GB_TRY(gb_jinja_new_array(state, &array));
    GB_TRY(gb_jinja_push(state, array, first));
    GB_TRY(gb_jinja_push(state, array, second));
    *pair = gb_jinja_array_value(GB_JINJA_TUPLE, array);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_new_dict(gb_jinja_state *state, gb_jinja_dict **dict) {
    gumbel_status status;
    *dict = gb_jinja_allocate(state, 1, sizeof **dict, &status);
    return status;
}

gumbel_status gb_jinja_find(gb_jinja_state *state, const gb_jinja_dict *dict, gb_jinja_value key,
                            gb_jinja_value **found) {
    *found = NULL;
    GB_TRY(gb_jinja_work(state, dict->count / 16));
    for (size_t i = 0; i < dict->count; i++) {
        gb_jinja_entry *entry = &dict->entries[i];
        bool equal;
        GB_TRY(gb_jinja_equal(state, &entry->key, &key, &equal));
        if (equal) {
            *found = &entry->value;
            break;
        }
    }
    return GUMBEL_OK;
}

gumbel_status gb_jinja_need_key(gb_jinja_state *state, const gb_jinja_value *value) {
    if (value->kind != GB_JINJA_LIST && value->kind != GB_JINJA_DICT)
        return GUMBEL_OK;
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s cannot be a key",
                         gb_jinja_type_name(value));
}

gumbel_status gb_jinja_set(gb_jinja_state *state, gb_jinja_dict *dict, gb_jinja_value key,
                           gb_jinja_value value) {
    gb_jinja_value *found;
    GB_TRY(gb_jinja_find(state, dict, key, &found));
    if (found) {
        *found = value;
        return GUMBEL_OK;
    }
    void *entries = dict->entries;
    GB_TRY(grow(state, &entries, dict->count, &dict->capacity, sizeof *dict->entries));
    dict->entries = entries;
    dict->entries[dict->count++] = (gb_jinja_entry){key, value};
    return GUMBEL_OK;
}

bool gb_jinja_is_true(const gb_jinja_value *value) {
    switch (value->kind) {
    case GB_JINJA_ABSENT:
    case GB_JINJA_UNDEFINED:
    case GB_JINJA_NONE:
        return false;
    case GB_JINJA_BOOLEAN:
        return value->as.boolean;
    case GB_JINJA_INTEGER:
        return value->as.integer != 0;
    case GB_JINJA_FLOAT:
        return value->as.real != 0;
    case GB_JINJA_STRING:
        return value->as.text.length > 0;
    case GB_JINJA_LIST:
    case GB_JINJA_TUPLE:
    case GB_JINJA_VIEW:
        return value->as.array->count > 0;
    case GB_JINJA_DICT:
        return value->as.dict->count > 0;
    default:
        return true;
    }
}

bool gb_jinja_is_integer(const gb_jinja_value *value) {
    return value->kind == GB_JINJA_INTEGER || value->kind == GB_JINJA_BOOLEAN;
}

bool gb_jinja_is_number(const gb_jinja_value *value) {
    return gb_jinja_is_integer(value) || value->kind == GB_JINJA_FLOAT;
}

int64_t gb_jinja_as_integer(const gb_jinja_value *value) {
    if (value->kind == GB_JINJA_BOOLEAN)
        return value->as.boolean;
    return value->kind == GB_JINJA_INTEGER ? value->as.integer : 0;
}

double gb_jinja_as_float(const gb_jinja_value *value) {
    return value->kind == GB_JINJA_FLOAT ? value->as.real : (double)gb_jinja_as_integer(value);
}

static gumbel_status characters_of(gb_jinja_state *state, gb_jinja_text text, gb_jinja_array *array) {
    size_t size;
    for (size_t offset = 0; offset < text.length; offset += size) {
        gb_jinja_text_code_point(text, offset, &size);
        GB_TRY(gb_jinja_push(state, array, gb_jinja_string(gb_jinja_text_part(text, offset, size))));
    }
    return GUMBEL_OK;
}

static gumbel_status keys_of(gb_jinja_state *state, const gb_jinja_dict *dict, gb_jinja_array *array) {
    for (size_t i = 0; i < dict->count; i++)
        GB_TRY(gb_jinja_push(state, array, dict->entries[i].key));
    return GUMBEL_OK;
}

gumbel_status gb_jinja_iterate(gb_jinja_state *state, const gb_jinja_value *value,
                               const gb_jinja_array **items) {
    gb_jinja_array *made;
    switch (value->kind) {
    case GB_JINJA_LIST:
    case GB_JINJA_TUPLE:
    case GB_JINJA_VIEW:
        *items = value->as.array;
        return GUMBEL_OK;
    case GB_JINJA_ITERATOR:
        GB_TRY(gb_jinja_new_array(state, &made));
        *made = *value->as.array;
        value->as.array->count = 0;
        break;
    case GB_JINJA_STRING:
        GB_TRY(gb_jinja_new_array(state, &made));
        GB_TRY(characters_of(state, value->as.text, made));
        break;
    case GB_JINJA_DICT:
        GB_TRY(gb_jinja_new_array(state, &made));
        GB_TRY(keys_of(state, value->as.dict, made));
        break;
    case GB_JINJA_UNDEFINED:
        GB_TRY(gb_jinja_new_array(state, &made));
        break;
    default:
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s cannot be iterated",
                             gb_jinja_type_name(value));
    }
    *items = made;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_length(gb_jinja_state *state, const gb_jinja_value *value, size_t *length) {
    switch (value->kind) {
    case GB_JINJA_LIST:
    case GB_JINJA_TUPLE:
    case GB_JINJA_VIEW:
        *length = value->as.array->count;
        return GUMBEL_OK;
    case GB_JINJA_DICT:
        *length = value->as.dict->count;
        return GUMBEL_OK;
    case GB_JINJA_STRING:
        *length = gb_jinja_text_count(value->as.text);
        return gb_jinja_work(state, value->as.text.length / 64);
    case GB_JINJA_LOOP:
        *length = value->as.loop->items->count;
        return GUMBEL_OK;
    case GB_JINJA_UNDEFINED:
        *length = 0;
        return GUMBEL_OK;
    default:
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s has no length",
                             gb_jinja_type_name(value));
    }
}
