/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/value.h"

static bool is_array(const gb_jinja_value *value) {
    return value->kind == GB_JINJA_LIST || value->kind == GB_JINJA_TUPLE;
}

static gumbel_status arrays_equal(gb_jinja_state *state, const gb_jinja_array *a, const gb_jinja_array *b,
                                  bool *equal) {
    size_t i = 0;
    *equal = a->count == b->count;
    for (; *equal && i < a->count; i++)
        GB_TRY(gb_jinja_equal(state, &a->items[i], &b->items[i], equal));
    return gb_jinja_work(state, i / 16);
}

static gumbel_status dicts_equal(gb_jinja_state *state, const gb_jinja_dict *a, const gb_jinja_dict *b,
                                 bool *equal) {
    *equal = a->count == b->count;
    GB_TRY(gb_jinja_work(state, a->count / 16));
    for (size_t i = 0; *equal && i < a->count; i++) {
        gb_jinja_value *other;
        GB_TRY(gb_jinja_find(state, b, a->entries[i].key, &other));
        *equal = other != NULL;
        if (other)
            GB_TRY(gb_jinja_equal(state, &a->entries[i].value, other, equal));
    }
    return GUMBEL_OK;
}

static int order_of_numbers(const gb_jinja_value *a, const gb_jinja_value *b) {
    if (gb_jinja_is_integer(a) && gb_jinja_is_integer(b)) {
        int64_t left = gb_jinja_as_integer(a), right = gb_jinja_as_integer(b);
        return (left > right) - (left < right);
    }
    double left = gb_jinja_as_float(a), right = gb_jinja_as_float(b);
    return (left > right) - (left < right);
}

static bool numbers_equal(const gb_jinja_value *a, const gb_jinja_value *b) {
    if (gb_jinja_is_integer(a) && gb_jinja_is_integer(b))
        return gb_jinja_as_integer(a) == gb_jinja_as_integer(b);
    return gb_jinja_as_float(a) == gb_jinja_as_float(b);
}

/* Two containers of the same kind; each level counts as one evaluation. */
static gumbel_status containers_equal(gb_jinja_state *state, const gb_jinja_value *a, const gb_jinja_value *b,
                                      bool *equal) {
    GB_TRY(gb_jinja_enter(state));
    if (a->kind == GB_JINJA_DICT)
        GB_TRY(dicts_equal(state, a->as.dict, b->as.dict, equal));
    else
        GB_TRY(arrays_equal(state, a->as.array, b->as.array, equal));
    gb_jinja_leave(state);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_equal(gb_jinja_state *state, const gb_jinja_value *a, const gb_jinja_value *b,
                             bool *equal) {
    if (gb_jinja_is_number(a) && gb_jinja_is_number(b)) {
        *equal = numbers_equal(a, b);
        return GUMBEL_OK;
    }
    *equal = a->kind == b->kind;
    if (!*equal)
        return GUMBEL_OK;
    switch (a->kind) {
    case GB_JINJA_UNDEFINED:
    case GB_JINJA_NONE:
        return GUMBEL_OK;
    case GB_JINJA_STRING:
        *equal = gb_jinja_text_equal(a->as.text, b->as.text);
        return gb_jinja_work(state, *equal ? a->as.text.length / 1024 : 0);
    case GB_JINJA_LIST:
    case GB_JINJA_TUPLE:
    case GB_JINJA_DICT:
        return containers_equal(state, a, b, equal);
    case GB_JINJA_METHOD:
        *equal = a->as.method->builtin == b->as.method->builtin;
        return GUMBEL_OK;
    case GB_JINJA_MACRO:
        *equal = a->as.macro == b->as.macro;
        return GUMBEL_OK;
    case GB_JINJA_FUNCTION:
        *equal = a->as.function == b->as.function;
        return GUMBEL_OK;
    default: /* the rest are equal when they are the same object */
        *equal = a->as.array == b->as.array;
        return GUMBEL_OK;
    }
}

static gumbel_status order_of_arrays(gb_jinja_state *state, const gb_jinja_array *a, const gb_jinja_array *b,
                                     int *order) {
    GB_TRY(gb_jinja_enter(state));
    size_t common = a->count < b->count ? a->count : b->count;
    *order = (a->count > b->count) - (a->count < b->count);
    for (size_t i = 0; i < common; i++) {
        bool equal;
        GB_TRY(gb_jinja_equal(state, &a->items[i], &b->items[i], &equal));
        if (!equal) {
            GB_TRY(gb_jinja_order(state, &a->items[i], &b->items[i], order));
            break;
        }
    }
    gb_jinja_leave(state);
    return gb_jinja_work(state, common / 16);
}

gumbel_status gb_jinja_order(gb_jinja_state *state, const gb_jinja_value *a, const gb_jinja_value *b,
                             int *order) {
    if (gb_jinja_is_number(a) && gb_jinja_is_number(b)) {
        *order = order_of_numbers(a, b);
        return GUMBEL_OK;
    }
    if (a->kind == GB_JINJA_STRING && b->kind == GB_JINJA_STRING) {
        *order = gb_jinja_text_compare(a->as.text, b->as.text);
        return gb_jinja_work(state, a->as.text.length / 1024);
    }
    if (is_array(a) && a->kind == b->kind)
        return order_of_arrays(state, a->as.array, b->as.array, order);
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "values of type %s and %s cannot be ordered",
                         gb_jinja_type_name(a), gb_jinja_type_name(b));
}
