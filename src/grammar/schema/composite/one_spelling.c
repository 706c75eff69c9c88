/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/composite/one_spelling.h"

#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/number/number.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/string/json_string.h"

/* Digits of a fraction before its point and behind it: with more a reader's doubles may be equal. */
enum { MOST_WHOLE = 6, MOST_PLACES = 9 };

static gb_expression digits(gb_schema_reader *reader, uint32_t most) {
    return gb_express_repeat(reader->expressions, gb_between(reader, '0', '9'), 0, most);
}

/* From 1 on, of so many digits. */
static gb_expression positive(gb_schema_reader *reader, uint32_t most) {
    return GB_JOIN(reader, gb_between(reader, '1', '9'), digits(reader, most == GB_NO_END ? most : most - 1));
}

/* No exponent, no zeros at the end, no -0. */
static gb_expression plain_numbers(gb_schema_reader *reader) {
    const gb_expression zero = gb_literal(reader, "0");
    const gb_expression minus = gb_express_repeat(reader->expressions, gb_literal(reader, "-"), 0, 1);
    const gb_expression fraction = GB_JOIN(reader, gb_literal(reader, "."), digits(reader, MOST_PLACES - 1),
                                           gb_between(reader, '1', '9'));
    return GB_EITHER(reader, zero, GB_JOIN(reader, minus, positive(reader, GB_NO_END)),
                     GB_JOIN(reader, minus, GB_EITHER(reader, zero, positive(reader, MOST_WHOLE)), fraction));
}

static gb_expression express_numbers(gb_schema_reader *reader, const gb_terms *terms, unsigned types) {
    const gb_expression numbers = gb_express_number(reader, terms, types);
    return numbers == reader->nothing ? numbers
                                      : gb_express_both(reader->expressions, numbers, plain_numbers(reader));
}

/* A listed value: lists and members have white space, and reals their digits. */
static gb_expression express_listed(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    if (json_is_array(value) || json_is_object(value) || json_is_real(value))
        return 0;
    return gb_express_candidate(reader, terms, value);
}

static gb_expression express_each(gb_schema_reader *reader, const gb_terms *terms, size_t count) {
    gb_expression values = reader->nothing;
    for (size_t i = 0; i < count && values; i++) {
        const gb_expression value = express_listed(reader, terms, gb_candidate(terms, i));
        values = value ? GB_EITHER(reader, values, value) : 0;
    }
    return values;
}

static gb_expression express_types(gb_schema_reader *reader, const gb_terms *terms, unsigned types) {
    gb_expression items[5];
    size_t count = 0;
    if (types & (GB_TYPE_ARRAY | GB_TYPE_OBJECT))
        return 0;
    if (types & GB_TYPE_NULL)
        items[count++] = gb_express_candidate(reader, terms, json_null());
    if (types & GB_TYPE_BOOLEAN) {
        items[count++] = gb_express_candidate(reader, terms, json_true());
        items[count++] = gb_express_candidate(reader, terms, json_false());
    }
    if (types & GB_TYPE_NUMBER)
        items[count++] = express_numbers(reader, terms, types & GB_TYPE_NUMBER);
    if (types & GB_TYPE_STRING)
        items[count++] = gb_express_string(reader, terms, true);
    return gb_schema_failed(reader) ? 0 : gb_either(reader, items, count);
}

gb_expression gb_express_one_spelling(gb_schema_reader *reader, const gb_terms *terms) {
    gb_alternatives alternatives = {0};
    gb_expression values = gb_find_alternatives(reader, terms, &alternatives) ? reader->nothing : 0;
    for (size_t i = 0; i < alternatives.count && values; i++) {
        const gb_terms *held = &alternatives.items[i];
        const size_t count = gb_candidate_count(reader, held);
        const gb_expression value = count != SIZE_MAX
                                        ? express_each(reader, held, count)
                                        : express_types(reader, held, gb_types_of(reader, held));
        values = value ? GB_EITHER(reader, values, value) : 0;
    }
    gb_alternatives_free(&alternatives);
    return gb_schema_failed(reader) ? 0 : values;
}
