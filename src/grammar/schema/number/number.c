/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/number/number.h"

#include "grammar/schema/number/multiple.h"
#include "grammar/schema/number/range.h"
#include "grammar/schema/reader/big_integers.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/rewrite/rewrite.h"

#include <stdio.h>
#include <string.h>

bool gb_read_decimal(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                     const json_t *number, gb_decimal *decimal) {
    const char *digits = gb_big_integer(reader->big_integers, number);
    const gumbel_status status =
        digits ? gb_decimal_read_digits(digits, decimal) : gb_decimal_read(number, decimal);
    if (status == GUMBEL_ERROR_MEMORY)
        gb_schema_no_memory(reader);
    else if (status != GUMBEL_OK)
        gb_schema_fail(reader, schema, keyword, status, "a number of more than %d digits", GB_MAX_DIGITS);
    return !gb_schema_failed(reader);
}

/* Narrows the bound. sign: 1 of a least, -1 of a most. */
static void tighten(gb_bound *bound, const gb_decimal *value, bool exclusive, int sign) {
    const int order = bound->exists ? sign * gb_decimal_compare(value, &bound->value) : 1;
    if (order > 0)
        *bound = (gb_bound){true, exclusive, *value};
    else if (order == 0)
        bound->exclusive |= exclusive;
}

/* keyword: minimum or maximum; exclusive: the one that excludes it, which in draft 4 is a boolean. */
static bool read_side(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                      const char *exclusive, gb_bound *bound, int sign) {
    const json_t *value = gb_keyword_number(reader, schema, keyword);
    const json_t *other = json_object_get(schema, exclusive);
    gb_decimal decimal;
    if (value) {
        if (!gb_read_decimal(reader, schema, keyword, value, &decimal))
            return false;
        tighten(bound, &decimal, json_is_true(other), sign);
    }
    if (other && !json_is_boolean(other)) {
        if (!gb_keyword_number(reader, schema, exclusive) ||
            !gb_read_decimal(reader, schema, exclusive, other, &decimal))
            return false;
        tighten(bound, &decimal, true, sign);
    }
    return !gb_schema_failed(reader);
}

/* OpenAPI's formats of numbers. Others are of strings. */
static void read_format(const json_t *schema, gb_bounds *bounds) {
    static const struct {
        const char *format;
        gb_decimal least, most;
    } formats[] = {{"int32", {true, "2147483648", ""}, {false, "2147483647", ""}},
                   {"int64", {true, "9223372036854775808", ""}, {false, "9223372036854775807", ""}},
                   {"uint32", {false, "0", ""}, {false, "4294967295", ""}},
                   {"uint64", {false, "0", ""}, {false, "18446744073709551615", ""}}};
    const char *format = json_string_value(json_object_get(schema, "format"));
    for (size_t i = 0; format && i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(format, formats[i].format) == 0) {
            tighten(&bounds->least, &formats[i].least, false, 1);
            tighten(&bounds->most, &formats[i].most, false, -1);
        }
}

bool gb_read_bounds(gb_schema_reader *reader, const gb_terms *terms, gb_bounds *bounds) {
    *bounds = (gb_bounds){0};
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *schema = terms->items[i];
        if (!read_side(reader, schema, "minimum", "exclusiveMinimum", &bounds->least, 1) ||
            !read_side(reader, schema, "maximum", "exclusiveMaximum", &bounds->most, -1))
            return false;
        read_format(schema, bounds);
    }
    return true;
}

bool gb_bounds_are_empty(const gb_bounds *bounds) {
    if (!bounds->least.exists || !bounds->most.exists)
        return false;
    const int order = gb_decimal_compare(&bounds->least.value, &bounds->most.value);
    return order > 0 || (order == 0 && (bounds->least.exclusive || bounds->most.exclusive));
}

bool gb_is_within(const gb_bounds *bounds, const gb_decimal *value) {
    const int low = bounds->least.exists ? gb_decimal_compare(value, &bounds->least.value) : 1;
    const int high = bounds->most.exists ? gb_decimal_compare(value, &bounds->most.value) : -1;
    return (low > 0 || (low == 0 && !bounds->least.exclusive)) &&
           (high < 0 || (high == 0 && !bounds->most.exclusive));
}

/* How many digits a number has at most, before the point and behind it. */
typedef struct digit_limits {
    uint32_t whole, decimals;
} digit_limits;

/* What excludes a number must exclude what a reader's double rounds to it, too. 15 digits make doubles that
 * differ. */
static digit_limits limits_of(const gb_bounds *bounds, unsigned types, bool excludes) {
    size_t whole = excludes || types == GB_TYPE_FRACTION ? 6 : 0;
    const gb_bound *const sides[] = {&bounds->least, &bounds->most};
    for (size_t i = 0; i < 2; i++)
        if (sides[i]->exists && sides[i]->exclusive && strlen(sides[i]->value.whole) > whole)
            whole = strlen(sides[i]->value.whole);
    if (whole == 0 || types == GB_TYPE_INTEGER)
        return (digit_limits){GB_NO_END, GB_NO_END};
    return (digit_limits){types == GB_TYPE_FRACTION ? 6 : GB_NO_END, whole < 14 ? 15 - (uint32_t)whole : 1};
}

static gb_expression digits(gb_schema_reader *reader, uint32_t least, uint32_t most) {
    return gb_express_repeat(reader->expressions, gb_between(reader, '0', '9'), least, most);
}

/* Behind the point; has_value: not zeros alone. */
static gb_expression fraction_digits(gb_schema_reader *reader, uint32_t most, bool has_value) {
    const gb_expression all = digits(reader, 1, most);
    const gb_expression zeros = gb_express_repeat(reader->expressions, gb_literal(reader, "0"), 1, GB_NO_END);
    return has_value ? gb_express_except(reader->expressions, all, zeros) : all;
}

/* Numbers of the types without an exponent. */
static gb_expression decimals(gb_schema_reader *reader, unsigned types, digit_limits limits) {
    const gb_expression minus = gb_express_repeat(reader->expressions, gb_literal(reader, "-"), 0, 1);
    const uint32_t whole = limits.whole < reader->most_digits ? limits.whole : reader->most_digits;
    const uint32_t more = whole == GB_NO_END ? GB_NO_END : whole - 1;
    const uint32_t places = limits.decimals < reader->most_digits ? limits.decimals : reader->most_digits;
    const gb_expression positive = GB_JOIN(reader, gb_between(reader, '1', '9'), digits(reader, 0, more));
    const gb_expression zero = gb_literal(reader, "0");
    if (types == GB_TYPE_INTEGER)
        return GB_EITHER(reader, zero, GB_JOIN(reader, minus, positive));
    const gb_expression fraction =
        GB_JOIN(reader, gb_literal(reader, "."), fraction_digits(reader, places, types == GB_TYPE_FRACTION));
    return GB_JOIN(reader, minus, GB_EITHER(reader, zero, positive),
                   types & GB_TYPE_INTEGER ? gb_express_repeat(reader->expressions, fraction, 0, 1)
                                           : fraction);
}

/* Leaves out a number of enum or const in `not`. */
static gb_expression leave_out(gb_schema_reader *reader, const json_t *schema, gb_expression numbers,
                               const json_t *value, bool *is_asked) {
    gb_decimal decimal;
    if (!json_is_number(value) || !gb_read_decimal(reader, schema, "not", value, &decimal))
        return numbers;
    *is_asked = true;
    return gb_express_except(reader->expressions, numbers,
                             gb_express_both(reader->expressions,
                                             gb_express_at_least(reader, &decimal, false),
                                             gb_express_at_most(reader, &decimal, false)));
}

static gb_expression narrow(gb_schema_reader *reader, const json_t *schema, gb_expression numbers,
                            bool *is_asked) {
    const json_t *excluded = gb_excluded(schema), *values = json_object_get(excluded, "enum");
    const json_t *multiple = gb_keyword_number(reader, schema, "multipleOf");
    if (json_object_get(excluded, "const"))
        numbers = leave_out(reader, schema, numbers, json_object_get(excluded, "const"), is_asked);
    for (size_t i = 0; i < json_array_size(values); i++)
        numbers = leave_out(reader, schema, numbers, json_array_get(values, i), is_asked);
    const json_t *other = gb_keyword_number(reader, excluded, "multipleOf");
    if (other) {
        *is_asked = true;
        numbers = gb_express_except(reader->expressions, numbers,
                                    gb_express_multiple(reader, excluded, other, true));
    }
    if (multiple) {
        *is_asked = true;
        numbers = gb_express_both(reader->expressions, numbers,
                                  gb_express_multiple(reader, schema, multiple, false));
    }
    return numbers;
}

static bool excludes_any(const gb_terms *terms) {
    for (size_t i = 0; i < terms->count; i++)
        if (gb_excluded(terms->items[i]))
            return true;
    return false;
}

/* ---- Exponents under a bound --------------------------------------------------------------------------- */

/* 1e-99 to 9.99e-1. */
static gb_expression express_small(gb_schema_reader *reader) {
    const gb_expression first = gb_between(reader, '1', '9'), any = gb_between(reader, '0', '9');
    const gb_expression fraction = GB_JOIN(reader, gb_literal(reader, "."), digits(reader, 1, 14));
    const gb_expression mark = GB_EITHER(reader, gb_literal(reader, "e-"), gb_literal(reader, "E-"));
    const gb_expression zero = gb_express_repeat(reader->expressions, gb_literal(reader, "0"), 0, 1);
    return GB_JOIN(reader, first, gb_express_repeat(reader->expressions, fraction, 0, 1), mark,
                   GB_EITHER(reader, GB_JOIN(reader, zero, first), GB_JOIN(reader, first, any)));
}

static bool is_within(const gb_bounds *bounds, const char *whole, bool negative) {
    gb_decimal value = {.negative = negative};
    snprintf(value.whole, sizeof value.whole, "%s", whole);
    const gb_bounds closed = {{bounds->least.exists, false, bounds->least.value},
                              {bounds->most.exists, false, bounds->most.value}};
    return gb_is_within(&closed, &value);
}

/* Adds those below 1 with an exponent, of both signs, where all of them are within the bounds. */
static gb_expression add_small(gb_schema_reader *reader, const gb_bounds *bounds, gb_expression numbers) {
    const gb_expression small = express_small(reader);
    const bool has_zero = is_within(bounds, "0", false);
    if (has_zero && is_within(bounds, "1", false))
        numbers = GB_EITHER(reader, numbers, small);
    if (has_zero && is_within(bounds, "1", true))
        numbers = GB_EITHER(reader, numbers, GB_JOIN(reader, gb_literal(reader, "-"), small));
    return numbers;
}

static bool asks_more_than_bounds(const gb_terms *terms) {
    for (size_t i = 0; i < terms->count; i++)
        if (json_object_get(terms->items[i], "multipleOf"))
            return true;
    return excludes_any(terms);
}

gb_expression gb_express_number(gb_schema_reader *reader, const gb_terms *terms, unsigned types) {
    gb_bounds bounds;
    if (!gb_read_bounds(reader, terms, &bounds))
        return 0;
    if (gb_bounds_are_empty(&bounds))
        return reader->nothing;
    bool is_asked = bounds.least.exists || bounds.most.exists || types == GB_TYPE_FRACTION;
    gb_expression numbers = decimals(reader, types, limits_of(&bounds, types, excludes_any(terms)));
    if (bounds.least.exists)
        numbers = gb_express_both(reader->expressions, numbers,
                                  gb_express_at_least(reader, &bounds.least.value, bounds.least.exclusive));
    if (bounds.most.exists)
        numbers = gb_express_both(reader->expressions, numbers,
                                  gb_express_at_most(reader, &bounds.most.value, bounds.most.exclusive));
    for (size_t i = 0; i < terms->count; i++)
        numbers = narrow(reader, terms->items[i], numbers, &is_asked);
    if (is_asked && (types & GB_TYPE_FRACTION) && !asks_more_than_bounds(terms))
        return add_small(reader, &bounds, numbers);
    if (is_asked)
        return numbers;
    return types == GB_TYPE_INTEGER ? reader->integer : reader->number;
}
