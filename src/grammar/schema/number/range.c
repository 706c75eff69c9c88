/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/number/range.h"

#include <string.h>

static gb_expression zeros(gb_schema_reader *reader) {
    return gb_express_repeat(reader->expressions, gb_literal(reader, "0"), 0, GB_NO_END);
}

static gb_expression some_digits(gb_schema_reader *reader, size_t least, size_t most) {
    return gb_express_repeat(reader->expressions, gb_between(reader, '0', '9'), (uint32_t)least,
                             most == SIZE_MAX ? GB_NO_END : (uint32_t)most);
}

static gb_expression optional(gb_schema_reader *reader, gb_expression item) {
    return gb_express_repeat(reader->expressions, item, 0, 1);
}

/* first to last; nothing where last is before first. */
static gb_expression digit(gb_schema_reader *reader, int first, int last) {
    return first <= last ? gb_between(reader, (char)first, (char)last) : reader->nothing;
}

static gb_expression this_digit(gb_schema_reader *reader, char value) {
    return gb_between(reader, value, value);
}

/* The digits of a fraction that is above `bound`, or the same. */
static gb_expression digits_above(gb_schema_reader *reader, const char *bound, bool exclusive) {
    if (!*bound)
        return exclusive ? GB_JOIN(reader, zeros(reader), gb_between(reader, '1', '9'), reader->digits)
                         : reader->digits;
    return GB_EITHER(reader, GB_JOIN(reader, digit(reader, *bound + 1, '9'), reader->digits),
                     GB_JOIN(reader, this_digit(reader, *bound), digits_above(reader, bound + 1, exclusive)));
}

/* The digits of a fraction that is below it; they may end at once unless `is_first`. */
static gb_expression digits_below(gb_schema_reader *reader, const char *bound, bool exclusive,
                                  bool is_first) {
    if (!*bound)
        return exclusive ? reader->nothing : zeros(reader);
    return GB_EITHER(
        reader, GB_JOIN(reader, digit(reader, '0', *bound - 1), reader->digits),
        GB_JOIN(reader, this_digit(reader, *bound), digits_below(reader, bound + 1, exclusive, false)),
        is_first ? reader->nothing : reader->empty);
}

/* What may follow the whole part of `bound` in a number above it. */
static gb_expression fraction_above(gb_schema_reader *reader, const char *bound, bool exclusive) {
    const gb_expression fraction = GB_JOIN(reader, gb_literal(reader, "."),
                                           *bound || exclusive ? digits_above(reader, bound, exclusive)
                                                               : some_digits(reader, 1, SIZE_MAX));
    return *bound || exclusive ? fraction : optional(reader, fraction);
}

static gb_expression fraction_below(gb_schema_reader *reader, const char *bound, bool exclusive) {
    const gb_expression point = gb_literal(reader, ".");
    if (*bound)
        return optional(reader, GB_JOIN(reader, point, digits_below(reader, bound, exclusive, true)));
    return exclusive ? reader->nothing
                     : optional(reader, GB_JOIN(reader, point, gb_literal(reader, "0"), zeros(reader)));
}

/* Whole numbers of as many digits as `bound` has, above it. */
static gb_expression whole_above(gb_schema_reader *reader, const char *bound) {
    if (!*bound)
        return reader->nothing;
    return GB_EITHER(reader,
                     GB_JOIN(reader, digit(reader, *bound + 1, '9'),
                             some_digits(reader, strlen(bound) - 1, strlen(bound) - 1)),
                     GB_JOIN(reader, this_digit(reader, *bound), whole_above(reader, bound + 1)));
}

/* Those below it, the first of whose digits is `first` or more. */
static gb_expression whole_below(gb_schema_reader *reader, const char *bound, char first) {
    if (!*bound)
        return reader->nothing;
    return GB_EITHER(reader,
                     GB_JOIN(reader, digit(reader, first, *bound - 1),
                             some_digits(reader, strlen(bound) - 1, strlen(bound) - 1)),
                     GB_JOIN(reader, this_digit(reader, *bound), whole_below(reader, bound + 1, '0')));
}

static gb_expression any_fraction(gb_schema_reader *reader) {
    return fraction_above(reader, "", false);
}

/* Numbers without a sign that are above the bound's digits. */
static gb_expression above(gb_schema_reader *reader, const gb_decimal *bound, bool exclusive) {
    const size_t length = strlen(bound->whole);
    const gb_expression longer =
        GB_JOIN(reader, gb_between(reader, '1', '9'), some_digits(reader, length, SIZE_MAX));
    const gb_expression greater = GB_EITHER(reader, longer, whole_above(reader, bound->whole));
    return GB_EITHER(reader, GB_JOIN(reader, greater, any_fraction(reader)),
                     GB_JOIN(reader, gb_literal(reader, bound->whole),
                             fraction_above(reader, bound->fraction, exclusive)));
}

static gb_expression below(gb_schema_reader *reader, const gb_decimal *bound, bool exclusive) {
    const size_t length = strlen(bound->whole);
    const gb_expression shorter =
        length == 1
            ? reader->nothing
            : GB_EITHER(reader, gb_literal(reader, "0"),
                        GB_JOIN(reader, gb_between(reader, '1', '9'), some_digits(reader, 0, length - 2)));
    const gb_expression smaller =
        GB_EITHER(reader, shorter, whole_below(reader, bound->whole, length == 1 ? '0' : '1'));
    return GB_EITHER(reader, GB_JOIN(reader, smaller, any_fraction(reader)),
                     GB_JOIN(reader, gb_literal(reader, bound->whole),
                             fraction_below(reader, bound->fraction, exclusive)));
}

static gb_expression negated(gb_schema_reader *reader, gb_expression number) {
    return GB_JOIN(reader, gb_literal(reader, "-"), number);
}

static const gb_decimal zero = {.whole = "0"};

gb_expression gb_express_at_least(gb_schema_reader *reader, const gb_decimal *bound, bool exclusive) {
    if (bound->negative)
        return GB_EITHER(reader, above(reader, &zero, false),
                         negated(reader, below(reader, bound, exclusive)));
    const bool has_zero = gb_decimal_is_zero(bound) && !exclusive;
    return GB_EITHER(reader, above(reader, bound, exclusive),
                     has_zero ? negated(reader, below(reader, &zero, false)) : reader->nothing);
}

gb_expression gb_express_at_most(gb_schema_reader *reader, const gb_decimal *bound, bool exclusive) {
    if (bound->negative)
        return negated(reader, above(reader, bound, exclusive));
    const bool has_no_zero = gb_decimal_is_zero(bound) && exclusive;
    return GB_EITHER(reader, below(reader, bound, exclusive),
                     negated(reader, above(reader, &zero, has_no_zero)));
}
