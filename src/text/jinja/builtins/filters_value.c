/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of any value: defaults, conversions, numbers, JSON.
 */
#include "text/jinja/builtins/builtin.h"
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/number.h"
#include "text/jinja/value/print.h"

#include <math.h>

static gumbel_status filter_default(gb_jinja_state *state, const gb_jinja_value *subject,
                                    const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)state;
    bool falsy = gb_jinja_boolean_argument(&arguments[1], false) && !gb_jinja_is_true(subject);
    *result = *subject;
    if (subject->kind == GB_JINJA_UNDEFINED || falsy)
        *result = arguments[0].kind == GB_JINJA_ABSENT ? gb_jinja_string(gb_jinja_text_of("")) : arguments[0];
    return GUMBEL_OK;
}

static gumbel_status filter_string(gb_jinja_state *state, const gb_jinja_value *subject,
                                   const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    gb_jinja_text text;
    *result = *subject;
    if (subject->kind == GB_JINJA_STRING)
        return GUMBEL_OK;
    GB_TRY(gb_jinja_to_text(state, subject, &text));
    *result = gb_jinja_string(text);
    return GUMBEL_OK;
}

static gumbel_status filter_safe(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    GB_TRY(filter_string(state, subject, arguments, result));
    result->markup = true;
    return GUMBEL_OK;
}

/* int(value) of a float, if it has one of 64 bits. */
static bool truncate_float(double value, int64_t *integer) {
    if (!(value > -9.2e18 && value < 9.2e18))
        return false;
    *integer = (int64_t)value;
    return true;
}

static gumbel_status filter_int(gb_jinja_state *state, const gb_jinja_value *subject,
                                const gb_jinja_value *arguments, gb_jinja_value *result) {
    GB_TRY(gb_jinja_need_defined(state, subject));
    int64_t base, integer;
    double real = NAN;
    GB_TRY(gb_jinja_integer_argument(state, &arguments[1], "base", 10, &base));
    *result = arguments[0].kind == GB_JINJA_ABSENT ? gb_jinja_integer(0) : arguments[0];
    if (subject->kind == GB_JINJA_STRING) {
        GB_TRY(gb_jinja_work(state, subject->as.text.length / 64));
        if (gb_jinja_parse_integer(subject->as.text, base, &integer)) {
            *result = gb_jinja_integer(integer);
            return GUMBEL_OK;
        }
        if (!gb_jinja_parse_float(subject->as.text, &real))
            return GUMBEL_OK;
    } else if (gb_jinja_is_integer(subject)) {
        *result = gb_jinja_integer(gb_jinja_as_integer(subject));
        return GUMBEL_OK;
    } else if (subject->kind == GB_JINJA_FLOAT) {
        real = subject->as.real;
    }
    if (truncate_float(real, &integer))
        *result = gb_jinja_integer(integer);
    return GUMBEL_OK;
}

static gumbel_status filter_float(gb_jinja_state *state, const gb_jinja_value *subject,
                                  const gb_jinja_value *arguments, gb_jinja_value *result) {
    GB_TRY(gb_jinja_need_defined(state, subject));
    double real;
    if (subject->kind == GB_JINJA_STRING)
        GB_TRY(gb_jinja_work(state, subject->as.text.length / 64));
    *result = arguments[0].kind == GB_JINJA_ABSENT ? gb_jinja_float(0) : arguments[0];
    if (gb_jinja_is_number(subject))
        *result = gb_jinja_float(gb_jinja_as_float(subject));
    else if (subject->kind == GB_JINJA_STRING && gb_jinja_parse_float(subject->as.text, &real))
        *result = gb_jinja_float(real);
    return GUMBEL_OK;
}

static gumbel_status need_number(gb_jinja_state *state, const char *filter, const gb_jinja_value *value) {
    GB_TRY(gb_jinja_need_defined(state, value));
    if (gb_jinja_is_number(value))
        return GUMBEL_OK;
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the filter \"%s\" needs a number, found %s", filter,
                         gb_jinja_type_name(value));
}

static gumbel_status filter_abs(gb_jinja_state *state, const gb_jinja_value *subject,
                                const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    GB_TRY(need_number(state, "abs", subject));
    return gb_jinja_sign(state, gb_jinja_as_float(subject) < 0, subject, result);
}

static gumbel_status filter_round(gb_jinja_state *state, const gb_jinja_value *subject,
                                  const gb_jinja_value *arguments, gb_jinja_value *result) {
    int64_t digits;
    gb_jinja_text method;
    GB_TRY(need_number(state, "round", subject));
    GB_TRY(gb_jinja_integer_argument(state, &arguments[0], "precision", 0, &digits));
    GB_TRY(gb_jinja_text_argument(state, &arguments[1], "method", gb_jinja_text_of("common"), &method));
    if (digits < 0 || digits > 300)
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "round takes 0 to 300 decimals here");
    double value = gb_jinja_as_float(subject), scale = pow(10, (double)digits);
    if (gb_jinja_text_is(method, "common"))
        *result = gb_jinja_is_integer(subject) ? gb_jinja_integer(gb_jinja_as_integer(subject))
                                               : gb_jinja_float(gb_jinja_round(value, (int)digits));
    else if (gb_jinja_text_is(method, "ceil"))
        *result = gb_jinja_float(ceil(value * scale) / scale);
    else if (gb_jinja_text_is(method, "floor"))
        *result = gb_jinja_float(floor(value * scale) / scale);
    else
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "round's method must be common, ceil or floor");
    return GUMBEL_OK;
}

static gumbel_status filter_length(gb_jinja_state *state, const gb_jinja_value *subject,
                                   const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    size_t length;
    GB_TRY(gb_jinja_length(state, subject, &length));
    *result = gb_jinja_integer((int64_t)length);
    return GUMBEL_OK;
}

/* json.dumps's indent: a number of spaces, or the text itself. */
static gumbel_status read_indent(gb_jinja_state *state, const gb_jinja_value *argument,
                                 gb_jinja_json_style *style) {
    if (argument->kind == GB_JINJA_ABSENT || argument->kind == GB_JINJA_NONE)
        return GUMBEL_OK;
    style->pretty = true;
    style->item_separator = gb_jinja_text_of(",");
    if (argument->kind == GB_JINJA_STRING) {
        style->indent = argument->as.text;
        return GUMBEL_OK;
    }
    int64_t width;
    GB_TRY(gb_jinja_integer_argument(state, argument, "indent", 0, &width));
    gb_jinja_value space = gb_jinja_string(gb_jinja_text_of(" ")), times = gb_jinja_integer(width), indent;
    GB_TRY(gb_jinja_arithmetic(state, GB_JINJA_MULTIPLY, &space, &times, &indent));
    style->indent = indent.as.text;
    return GUMBEL_OK;
}

static gumbel_status read_separators(gb_jinja_state *state, const gb_jinja_value *argument,
                                     gb_jinja_json_style *style) {
    if (argument->kind == GB_JINJA_ABSENT || argument->kind == GB_JINJA_NONE)
        return GUMBEL_OK;
    const gb_jinja_array *pair;
    GB_TRY(gb_jinja_iterate(state, argument, &pair));
    if (pair->count != 2 || pair->items[0].kind != GB_JINJA_STRING || pair->items[1].kind != GB_JINJA_STRING)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "tojson's separators must be two str");
    style->item_separator = pair->items[0].as.text;
    style->key_separator = pair->items[1].as.text;
    return GUMBEL_OK;
}

static gumbel_status filter_tojson(gb_jinja_state *state, const gb_jinja_value *subject,
                                   const gb_jinja_value *arguments, gb_jinja_value *result) {
    gb_jinja_json_style style = {
        .ascii = gb_jinja_boolean_argument(&arguments[0], false),
        .item_separator = gb_jinja_text_of(", "),
        .key_separator = gb_jinja_text_of(": "),
        .sort_keys = gb_jinja_boolean_argument(&arguments[3], false),
    };
    GB_TRY(read_indent(state, &arguments[1], &style));
    GB_TRY(read_separators(state, &arguments[2], &style));
    gb_jinja_buffer buffer = {0};
    GB_TRY(gb_jinja_print_json(state, subject, &style, &buffer));
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return GUMBEL_OK;
}

const gb_jinja_builtin gb_jinja_value_filters[] = {
    {.name = "default", .run = filter_default, .parameters = {"default_value", "boolean"}},
    {.name = "d", .run = filter_default, .parameters = {"default_value", "boolean"}},
    {.name = "string", .run = filter_string},
    {.name = "safe", .run = filter_safe},
    {.name = "int", .run = filter_int, .parameters = {"default", "base"}},
    {.name = "float", .run = filter_float, .parameters = {"default"}},
    {.name = "abs", .run = filter_abs},
    {.name = "round", .run = filter_round, .parameters = {"precision", "method"}},
    {.name = "length", .run = filter_length},
    {.name = "count", .run = filter_length},
    {.name = "tojson",
     .run = filter_tojson,
     .parameters = {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {.name = NULL},
};
