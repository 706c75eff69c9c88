/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests: what may stand behind "is", and what select and its kin apply.
 */
#include "text/jinja/run/runtime.h"

/* Defines test_NAME as the condition on subject. */
#define SIMPLE_TEST(name, condition)                                                                         \
    static gumbel_status test_##name(gb_jinja_state *state, const gb_jinja_value *subject,                   \
                                     const gb_jinja_value *arguments, gb_jinja_value *result) {              \
        (void)state, (void)arguments;                                                                        \
        *result = gb_jinja_boolean(condition);                                                               \
        return GUMBEL_OK;                                                                                    \
    }

/* An undefined value can be iterated, has a length and can be called as far as Python's protocols go. */
static bool is_sequence(const gb_jinja_value *value) {
    switch (value->kind) {
    case GB_JINJA_UNDEFINED:
    case GB_JINJA_STRING:
    case GB_JINJA_LIST:
    case GB_JINJA_TUPLE:
    case GB_JINJA_DICT:
        return true;
    default:
        return false;
    }
}

static bool is_iterable(const gb_jinja_value *value) {
    return is_sequence(value) || value->kind == GB_JINJA_VIEW || value->kind == GB_JINJA_ITERATOR ||
           value->kind == GB_JINJA_LOOP;
}

static bool is_callable(const gb_jinja_value *value) {
    return value->kind == GB_JINJA_MACRO || value->kind == GB_JINJA_FUNCTION ||
           value->kind == GB_JINJA_METHOD || value->kind == GB_JINJA_UNDEFINED;
}

SIMPLE_TEST(defined, subject->kind != GB_JINJA_UNDEFINED)
SIMPLE_TEST(undefined, subject->kind == GB_JINJA_UNDEFINED)
SIMPLE_TEST(none, subject->kind == GB_JINJA_NONE)
SIMPLE_TEST(boolean, subject->kind == GB_JINJA_BOOLEAN)
SIMPLE_TEST(true, subject->kind == GB_JINJA_BOOLEAN && subject->as.boolean)
SIMPLE_TEST(false, subject->kind == GB_JINJA_BOOLEAN && !subject->as.boolean)
SIMPLE_TEST(integer, subject->kind == GB_JINJA_INTEGER)
SIMPLE_TEST(float, subject->kind == GB_JINJA_FLOAT)
SIMPLE_TEST(number, gb_jinja_is_number(subject))
SIMPLE_TEST(string, subject->kind == GB_JINJA_STRING)
SIMPLE_TEST(mapping, subject->kind == GB_JINJA_DICT)
SIMPLE_TEST(sequence, is_sequence(subject))
SIMPLE_TEST(iterable, is_iterable(subject))
SIMPLE_TEST(callable, is_callable(subject))

/* Defines test_NAME as a comparison of subject with its argument. */
#define COMPARISON_TEST(name, operation)                                                                     \
    static gumbel_status test_##name(gb_jinja_state *state, const gb_jinja_value *subject,                   \
                                     const gb_jinja_value *arguments, gb_jinja_value *result) {              \
        bool holds;                                                                                          \
        GB_TRY(gb_jinja_compare(state, operation, subject, &arguments[0], &holds));                          \
        *result = gb_jinja_boolean(holds);                                                                   \
        return GUMBEL_OK;                                                                                    \
    }

COMPARISON_TEST(equal, GB_JINJA_EQUAL)
COMPARISON_TEST(not_equal, GB_JINJA_NOT_EQUAL)
COMPARISON_TEST(less, GB_JINJA_LESS)
COMPARISON_TEST(less_equal, GB_JINJA_LESS_EQUAL)
COMPARISON_TEST(greater, GB_JINJA_GREATER)
COMPARISON_TEST(greater_equal, GB_JINJA_GREATER_EQUAL)
COMPARISON_TEST(in, GB_JINJA_IN)

/* value % divisor == rest. */
static gumbel_status has_rest(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_value divisor,
                              int64_t rest, gb_jinja_value *result) {
    gb_jinja_value found, wanted = gb_jinja_integer(rest);
    bool equal;
    GB_TRY(gb_jinja_arithmetic(state, GB_JINJA_MODULO, value, &divisor, &found));
    GB_TRY(gb_jinja_equal(state, &found, &wanted, &equal));
    *result = gb_jinja_boolean(equal);
    return GUMBEL_OK;
}

GB_JINJA_DEFINE(test_odd, has_rest(state, subject, gb_jinja_integer(2), 1, result))
GB_JINJA_DEFINE(test_even, has_rest(state, subject, gb_jinja_integer(2), 0, result))
GB_JINJA_DEFINE(test_divisibleby, has_rest(state, subject, arguments[0], 0, result))

const gb_jinja_builtin gb_jinja_tests[] = {
    {.name = "defined", .run = test_defined},
    {.name = "undefined", .run = test_undefined},
    {.name = "none", .run = test_none},
    {.name = "boolean", .run = test_boolean},
    {.name = "true", .run = test_true},
    {.name = "false", .run = test_false},
    {.name = "integer", .run = test_integer},
    {.name = "float", .run = test_float},
    {.name = "number", .run = test_number},
    {.name = "string", .run = test_string},
    {.name = "mapping", .run = test_mapping},
    {.name = "sequence", .run = test_sequence},
    {.name = "iterable", .run = test_iterable},
    {.name = "callable", .run = test_callable},
    {.name = "equalto", .run = test_equal, .parameters = {"b"}, .required = 1},
    {.name = "eq", .run = test_equal, .parameters = {"b"}, .required = 1},
    {.name = "==", .run = test_equal, .parameters = {"b"}, .required = 1},
    {.name = "ne", .run = test_not_equal, .parameters = {"b"}, .required = 1},
    {.name = "!=", .run = test_not_equal, .parameters = {"b"}, .required = 1},
    {.name = "lt", .run = test_less, .parameters = {"b"}, .required = 1},
    {.name = "<", .run = test_less, .parameters = {"b"}, .required = 1},
    {.name = "lessthan", .run = test_less, .parameters = {"b"}, .required = 1},
    {.name = "le", .run = test_less_equal, .parameters = {"b"}, .required = 1},
    {.name = "<=", .run = test_less_equal, .parameters = {"b"}, .required = 1},
    {.name = "gt", .run = test_greater, .parameters = {"b"}, .required = 1},
    {.name = ">", .run = test_greater, .parameters = {"b"}, .required = 1},
    {.name = "greaterthan", .run = test_greater, .parameters = {"b"}, .required = 1},
    {.name = "ge", .run = test_greater_equal, .parameters = {"b"}, .required = 1},
    {.name = ">=", .run = test_greater_equal, .parameters = {"b"}, .required = 1},
    {.name = "in", .run = test_in, .parameters = {"seq"}, .required = 1},
    {.name = "odd", .run = test_odd},
    {.name = "even", .run = test_even},
    {.name = "divisibleby", .run = test_divisibleby, .parameters = {"num"}, .required = 1},
    {.name = NULL},
};
