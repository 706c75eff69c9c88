/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/print.h"

#include <math.h>

static gumbel_status fail_operands(gb_jinja_state *state, const char *operation, const gb_jinja_value *left,
                                   const gb_jinja_value *right) {
    GB_TRY(gb_jinja_need_defined(state, left));
    GB_TRY(gb_jinja_need_defined(state, right));
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "%s does not take values of type %s and %s", operation,
                         gb_jinja_type_name(left), gb_jinja_type_name(right));
}

/* markupsafe.escape, which a string marked safe applies to what it is joined with. */
static gumbel_status append_markup(gb_jinja_state *state, gb_jinja_buffer *buffer,
                                   const gb_jinja_value *value, bool escape) {
    static const char special[] = "&<>'\"";
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    if (!escape || value->markup)
        return gb_jinja_append(state, buffer, value->as.text);
    for (size_t i = 0; i < value->as.text.length; i++) {
        gb_jinja_text byte = gb_jinja_text_part(value->as.text, i, 1);
        size_t found = gb_jinja_text_find(gb_jinja_text_of(special), byte, 0);
        buffer->taints = gb_jinja_is_tainted(byte, 0);
        if (found == GB_JINJA_NOT_FOUND)
            GB_TRY(gb_jinja_append(state, buffer, byte));
        else
            GB_TRY(gb_jinja_append_string(state, buffer, escapes[found]));
    }
    buffer->taints = false;
    return GUMBEL_OK;
}

static gumbel_status join_texts(gb_jinja_state *state, const gb_jinja_value *left,
                                const gb_jinja_value *right, gb_jinja_value *result) {
    bool markup = left->markup || right->markup;
    gb_jinja_buffer buffer = {0};
    GB_TRY(append_markup(state, &buffer, left, markup));
    GB_TRY(append_markup(state, &buffer, right, markup));
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    result->markup = markup;
    return GUMBEL_OK;
}

static gumbel_status append_array(gb_jinja_state *state, gb_jinja_array *to, const gb_jinja_array *from) {
    for (size_t i = 0; i < from->count; i++)
        GB_TRY(gb_jinja_push(state, to, from->items[i]));
    return GUMBEL_OK;
}

static gumbel_status join_arrays(gb_jinja_state *state, const gb_jinja_value *left,
                                 const gb_jinja_value *right, gb_jinja_value *result) {
    gb_jinja_array *array;
    GB_TRY(gb_jinja_new_array(state, &array));
    GB_TRY(append_array(state, array, left->as.array));
    GB_TRY(append_array(state, array, right->as.array));
    *result = gb_jinja_array_value(left->kind, array);
    return GUMBEL_OK;
}

/* str(left) and str(right) as one string. */
static gumbel_status concatenate(gb_jinja_state *state, const gb_jinja_value *left,
                                 const gb_jinja_value *right, gb_jinja_value *result) {
    gb_jinja_buffer buffer = {0};
    GB_TRY(gb_jinja_print(state, left, &buffer));
    GB_TRY(gb_jinja_print(state, right, &buffer));
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return GUMBEL_OK;
}

static gumbel_status repeat(gb_jinja_state *state, const gb_jinja_value *value, int64_t times,
                            gb_jinja_value *result) {
    if (value->kind == GB_JINJA_STRING) {
        gb_jinja_buffer buffer = {0};
        for (int64_t i = 0; i < times && value->as.text.length; i++) {
            GB_TRY(gb_jinja_append(state, &buffer, value->as.text));
            GB_TRY(gb_jinja_work(state, 1));
        }
        *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
        return GUMBEL_OK;
    }
    gb_jinja_array *array;
    GB_TRY(gb_jinja_new_array(state, &array));
    for (int64_t i = 0; i < times && value->as.array->count; i++) {
        GB_TRY(append_array(state, array, value->as.array));
        GB_TRY(gb_jinja_work(state, 1));
    }
    *result = gb_jinja_array_value(value->kind, array);
    return GUMBEL_OK;
}

/* Integers fall to this when Python's would leave 64 bits. */
static gumbel_status fail_overflow(gb_jinja_state *state) {
    return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "an integer leaves 64 bits");
}

static gumbel_status power(gb_jinja_state *state, int64_t base, int64_t exponent, gb_jinja_value *result) {
    if (exponent < 0) {
        *result = gb_jinja_float(pow((double)base, (double)exponent));
        return GUMBEL_OK;
    }
    int64_t value = 1;
    for (; exponent > 0 && value != 0; exponent--) {
        if ((base == 1 || base == -1) && exponent > 2)
            exponent = 2 - exponent % 2; /* only its parity matters */
        if (__builtin_mul_overflow(value, base, &value))
            return fail_overflow(state);
    }
    *result = gb_jinja_integer(value);
    return GUMBEL_OK;
}

/* // and % round towards minus infinity. */
static gumbel_status divide_integers(gb_jinja_state *state, bool modulo, int64_t left, int64_t right,
                                     gb_jinja_value *result) {
    if (right == -1) { /* the one quotient that may overflow */
        if (!modulo && left == INT64_MIN)
            return fail_overflow(state);
        *result = gb_jinja_integer(modulo ? 0 : -left);
        return GUMBEL_OK;
    }
    int64_t quotient = left / right, rest = left % right;
    bool below = rest != 0 && (rest < 0) != (right < 0);
    *result = gb_jinja_integer(modulo ? rest + (below ? right : 0) : quotient - below);
    return GUMBEL_OK;
}

static gumbel_status compute_integers(gb_jinja_state *state, gb_jinja_operator operation, int64_t left,
                                      int64_t right, gb_jinja_value *result) {
    int64_t value = 0;
    bool overflow = false;
    switch (operation) {
    case GB_JINJA_ADD:
        overflow = __builtin_add_overflow(left, right, &value);
        break;
    case GB_JINJA_SUBTRACT:
        overflow = __builtin_sub_overflow(left, right, &value);
        break;
    case GB_JINJA_MULTIPLY:
        overflow = __builtin_mul_overflow(left, right, &value);
        break;
    case GB_JINJA_POWER:
        return power(state, left, right, result);
    default:
        return divide_integers(state, operation == GB_JINJA_MODULO, left, right, result);
    }
    *result = gb_jinja_integer(value);
    return overflow ? fail_overflow(state) : GUMBEL_OK;
}

static double compute_floats(gb_jinja_operator operation, double left, double right) {
    switch (operation) {
    case GB_JINJA_ADD:
        return left + right;
    case GB_JINJA_SUBTRACT:
        return left - right;
    case GB_JINJA_MULTIPLY:
        return left * right;
    case GB_JINJA_DIVIDE:
        return left / right;
    case GB_JINJA_POWER:
        return pow(left, right);
    default:
        break;
    }
    double rest = fmod(left, right);
    if (rest != 0 && (rest < 0) != (right < 0))
        rest += right;
    return operation == GB_JINJA_MODULO ? rest : floor((left - rest) / right + 0.5);
}

static gumbel_status compute_numbers(gb_jinja_state *state, gb_jinja_operator operation,
                                     const gb_jinja_value *left, const gb_jinja_value *right,
                                     gb_jinja_value *result) {
    bool divides =
        operation == GB_JINJA_DIVIDE || operation == GB_JINJA_FLOOR_DIVIDE || operation == GB_JINJA_MODULO;
    if (divides && gb_jinja_as_float(right) == 0)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "division by zero");
    if (operation != GB_JINJA_DIVIDE && gb_jinja_is_integer(left) && gb_jinja_is_integer(right))
        return compute_integers(state, operation, gb_jinja_as_integer(left), gb_jinja_as_integer(right),
                                result);
    *result = gb_jinja_float(compute_floats(operation, gb_jinja_as_float(left), gb_jinja_as_float(right)));
    return GUMBEL_OK;
}

static bool is_sequence(const gb_jinja_value *value) {
    return value->kind == GB_JINJA_STRING || value->kind == GB_JINJA_LIST || value->kind == GB_JINJA_TUPLE;
}

gumbel_status gb_jinja_arithmetic(gb_jinja_state *state, gb_jinja_operator operation,
                                  const gb_jinja_value *left, const gb_jinja_value *right,
                                  gb_jinja_value *result) {
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (operation == GB_JINJA_CONCATENATE)
        return concatenate(state, left, right, result);
    if (gb_jinja_is_number(left) && gb_jinja_is_number(right))
        return compute_numbers(state, operation, left, right, result);
    if (operation == GB_JINJA_ADD && is_sequence(left) && left->kind == right->kind)
        return left->kind == GB_JINJA_STRING ? join_texts(state, left, right, result)
                                             : join_arrays(state, left, right, result);
    if (operation == GB_JINJA_MULTIPLY && is_sequence(left) && gb_jinja_is_integer(right))
        return repeat(state, left, gb_jinja_as_integer(right), result);
    if (operation == GB_JINJA_MULTIPLY && is_sequence(right) && gb_jinja_is_integer(left))
        return repeat(state, right, gb_jinja_as_integer(left), result);
    if (operation == GB_JINJA_MODULO && left->kind == GB_JINJA_STRING)
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "formatting with %% is not known here");
    return fail_operands(state, names[operation], left, right);
}

gumbel_status gb_jinja_sign(gb_jinja_state *state, bool negate, const gb_jinja_value *value,
                            gb_jinja_value *result) {
    GB_TRY(gb_jinja_need_defined(state, value));
    if (!gb_jinja_is_number(value))
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s has no sign",
                             gb_jinja_type_name(value));
    if (value->kind == GB_JINJA_FLOAT) {
        *result = gb_jinja_float(negate ? -value->as.real : value->as.real);
        return GUMBEL_OK;
    }
    int64_t integer = gb_jinja_as_integer(value);
    if (negate && integer == INT64_MIN)
        return fail_overflow(state);
    *result = gb_jinja_integer(negate ? -integer : integer);
    return GUMBEL_OK;
}

/* item in container. */
static gumbel_status contains(gb_jinja_state *state, const gb_jinja_value *item,
                              const gb_jinja_value *container, bool *result) {
    if (container->kind == GB_JINJA_STRING) {
        if (item->kind != GB_JINJA_STRING)
            return fail_operands(state, "in", item, container);
        GB_TRY(gb_jinja_work_search(state, container->as.text, item->as.text));
        *result = gb_jinja_text_find(container->as.text, item->as.text, 0) != GB_JINJA_NOT_FOUND;
        return GUMBEL_OK;
    }
    if (container->kind == GB_JINJA_DICT) {
        gb_jinja_value *found;
        GB_TRY(gb_jinja_need_key(state, item));
        GB_TRY(gb_jinja_find(state, container->as.dict, *item, &found));
        *result = found != NULL;
        return GUMBEL_OK;
    }
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_iterate(state, container, &items));
    *result = false;
    for (size_t i = 0; !*result && i < items->count; i++)
        GB_TRY(gb_jinja_equal(state, &items->items[i], item, result));
    return gb_jinja_work(state, items->count / 16);
}

gumbel_status gb_jinja_compare(gb_jinja_state *state, gb_jinja_operator operation, const gb_jinja_value *left,
                               const gb_jinja_value *right, bool *result) {
    bool negated = operation == GB_JINJA_NOT_EQUAL || operation == GB_JINJA_NOT_IN;
    if (operation == GB_JINJA_EQUAL || operation == GB_JINJA_NOT_EQUAL)
        GB_TRY(gb_jinja_equal(state, left, right, result));
    else if (operation == GB_JINJA_IN || operation == GB_JINJA_NOT_IN)
        GB_TRY(contains(state, left, right, result));
    if (operation == GB_JINJA_EQUAL || operation == GB_JINJA_IN || negated) {
        *result = *result != negated;
        return GUMBEL_OK;
    }
    GB_TRY(gb_jinja_need_defined(state, left));
    GB_TRY(gb_jinja_need_defined(state, right));
    int order;
    GB_TRY(gb_jinja_order(state, left, right, &order));
    bool greater = operation == GB_JINJA_GREATER || operation == GB_JINJA_GREATER_EQUAL;
    bool or_equal = operation == GB_JINJA_LESS_EQUAL || operation == GB_JINJA_GREATER_EQUAL;
    *result = greater ? order > 0 : order < 0;
    *result = *result || (or_equal && order == 0);
    return GUMBEL_OK;
}
