/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/number/multiple.h"

#include "base/memory.h"
#include "grammar/schema/number/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_UNITS = 10000, MOST_DECIMALS = 9, MOST_STATES = 40000, USUAL_DIGITS = 40 };

/* The automaton of -?[0-9]+(\.[0-9]*)? that are multiples of units / 10^decimals. Besides the beginning and a
 * state behind the sign it has one for each remainder of the digits so far and each phase: by how many digits
 * stand before the point, USUAL_DIGITS at most where that needs few states, then by how many decimals were
 * read.
 */
typedef struct multiples {
    uint32_t units, decimals;
    uint32_t digits; /* before the point; 1: any number of them */
    gb_byte_move *moves;
    bool *accepts;
    size_t count;
} multiples;

enum { AT_START, BEHIND_SIGN, FIRST_PHASE };

static uint32_t state_of(const multiples *all, uint32_t phase, uint64_t value) {
    return FIRST_PHASE + phase * all->units + (uint32_t)(value % all->units);
}

static void add_move(multiples *all, uint32_t from, uint32_t to, int byte) {
    all->moves[all->count++] = (gb_byte_move){from, to, (uint8_t)byte, (uint8_t)byte};
}

static void add_digits(multiples *all, uint32_t from, uint32_t phase, uint32_t remainder) {
    for (uint32_t digit = 0; digit < 10; digit++)
        add_move(all, from, state_of(all, phase, (uint64_t)remainder * 10 + digit), '0' + (int)digit);
}

/* Whether a number that ends here is a multiple: the decimals that are missing are zeros. */
static bool is_multiple(const multiples *all, uint32_t phase, uint32_t remainder) {
    uint64_t value = remainder;
    for (uint32_t decimals = phase > all->digits ? phase - all->digits : 0; decimals < all->decimals;
         decimals++)
        value = value * 10 % all->units;
    return value % all->units == 0;
}

static void add_state(multiples *all, uint32_t phase, uint32_t remainder) {
    const uint32_t state = state_of(all, phase, remainder);
    all->accepts[state] = is_multiple(all, phase, remainder);
    if (phase < all->digits) {
        if (phase + 1 < all->digits || all->digits == 1)
            add_digits(all, state, all->digits == 1 ? 0 : phase + 1, remainder);
        add_move(all, state, state_of(all, all->digits, remainder), '.');
    } else if (phase < all->digits + all->decimals) {
        add_digits(all, state, phase + 1, remainder);
    } else if (remainder == 0) {
        add_move(all, state, state, '0');
    }
}

static size_t state_count(const multiples *all) {
    return FIRST_PHASE + (size_t)(all->digits + all->decimals + 1) * all->units;
}

static gb_expression express(gb_schema_reader *reader, multiples *all) {
    all->moves = gb_allocate(state_count(all) * 11, sizeof *all->moves);
    all->accepts = gb_allocate(state_count(all), sizeof *all->accepts);
    gb_expression automaton = 0;
    if (all->moves && all->accepts) {
        add_move(all, AT_START, BEHIND_SIGN, '-');
        add_digits(all, AT_START, 0, 0);
        add_digits(all, BEHIND_SIGN, 0, 0);
        for (uint32_t phase = 0; phase < all->digits + all->decimals + 1; phase++)
            for (uint32_t remainder = 0; remainder < all->units; remainder++)
                add_state(all, phase, remainder);
        automaton =
            gb_express_automaton(reader->expressions, all->moves, all->count, all->accepts, state_count(all));
    } else {
        gb_schema_no_memory(reader);
    }
    gb_free(all->moves);
    gb_free(all->accepts);
    return automaton;
}

gb_expression gb_express_multiple(gb_schema_reader *reader, const json_t *schema, const json_t *multiple,
                                  bool is_long) {
    gb_decimal decimal;
    multiples all = {.digits = 1};
    char digits[2 * GB_MAX_DIGITS + 1];
    if (!gb_read_decimal(reader, schema, "multipleOf", multiple, &decimal))
        return 0;
    if (decimal.negative || gb_decimal_is_zero(&decimal))
        return gb_schema_fail(reader, schema, "multipleOf", GUMBEL_ERROR_FORMAT, "expected a number above 0");
    snprintf(digits, sizeof digits, "%s%s", decimal.whole, decimal.fraction);
    const unsigned long units = strlen(digits) < 18 ? strtoul(digits, NULL, 10) : MOST_UNITS + 1;
    all.decimals = (uint32_t)strlen(decimal.fraction);
    all.units = (uint32_t)units;
    if (units > MOST_UNITS || all.decimals > MOST_DECIMALS || state_count(&all) > MOST_STATES)
        return gb_schema_fail(reader, schema, "multipleOf", GUMBEL_ERROR_UNSUPPORTED,
                              "at most %d, in units of its last decimal", MOST_UNITS);
    all.digits = USUAL_DIGITS; /* a double holds what is shorter, so that a validator can divide it */
    if (is_long || state_count(&all) > MOST_STATES / 2)
        all.digits = 1;
    return express(reader, &all);
}
