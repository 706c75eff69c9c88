/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/compile/dfa.h"

#include "base/memory.h"
#include "grammar/compile/lengths.h"
#include "grammar/match/configurations.h"

#include <string.h>

/* Pairs of configurations of a and b, numbered in the order in which they are found. */
typedef struct product {
    gb_configurations of_a, of_b;
    gb_intern_table pairs;
    gb_product kind;
    uint32_t unit_start,
        unit_end;            /* of b, where it is a unit: a complete one is at its end, then begins anew */
    bool is_ambiguous;       /* a unit may end and go on, or be empty */
    uint8_t first_byte[256]; /* of each class of the product */
    gb_dfa *dfa;
    size_t row_capacity, accept_capacity, unit_capacity;
} product;

#define STACK_LIMIT 100000

void gb_dfa_free(gb_dfa *dfa) {
    gb_free(dfa->rows);
    gb_free(dfa->accepts);
    gb_free(dfa->ends_unit);
    gb_free(dfa->class_bytes);
    gb_lengths_free(&dfa->lengths);
    *dfa = (gb_dfa){0};
}

enum { PAIR_SLOTS = 1024 };

/* The slot of a pair of classes in a table of numbers + 1, or the free one where it belongs. */
static uint16_t *slot_of(const product *all, uint16_t *slots, uint8_t a, uint8_t b, const uint8_t *class_in_a,
                         const uint8_t *class_in_b) {
    for (unsigned at = (a * 31u + b) % PAIR_SLOTS;; at = (at + 1) % PAIR_SLOTS) {
        const uint8_t first = slots[at] ? all->first_byte[slots[at] - 1] : 0;
        if (!slots[at] || (class_in_a[first] == a && class_in_b[first] == b))
            return &slots[at];
    }
}

/* Bytes that are of one class in both are one class of the product. False without memory. */
static bool find_classes(product *all, const gb_automaton *a, const gb_automaton *b) {
    gb_dfa *dfa = all->dfa;
    uint16_t slots[PAIR_SLOTS] = {0};
    for (unsigned byte = 0; byte < 256; byte++) {
        uint16_t *slot = slot_of(all, slots, a->class_of[byte], b->class_of[byte], a->class_of, b->class_of);
        if (!*slot) {
            all->first_byte[dfa->class_count] = (uint8_t)byte;
            *slot = (uint16_t)++dfa->class_count;
        }
        dfa->class_of[byte] = (uint8_t)(*slot - 1);
    }
    dfa->class_bytes = gb_allocate(dfa->class_count, sizeof *dfa->class_bytes);
    for (unsigned byte = 0; byte < 256 && dfa->class_bytes; byte++)
        gb_set_add(&dfa->class_bytes[dfa->class_of[byte]], byte);
    return dfa->class_bytes;
}

static bool is_dead(const product *all, uint32_t a, uint32_t b) {
    return a == GB_DEAD || (all->kind != GB_PRODUCT_EXCEPT && b == GB_DEAD);
}

static bool has_units(const product *all) {
    return all->kind == GB_PRODUCT_UNITS;
}

/* Where a byte leads in b. */
static uint32_t step_in_b(product *all, uint32_t b, uint8_t byte) {
    if (has_units(all) && b == all->unit_end)
        b = all->unit_start;
    const uint32_t to = gb_byte_step(&all->of_b, b, byte);
    all->is_ambiguous |= has_units(all) && to != all->unit_end && all->of_b.traits[to] & GB_MAY_END;
    return to;
}

/* The number of a pair, or GB_NO_STATE for one that leads nowhere. false without memory. */
static bool number_of(product *all, uint32_t a, uint32_t b, uint32_t *number) {
    *number = GB_NO_STATE;
    return is_dead(all, a, b) || gb_intern(&all->pairs, (const uint32_t[]){a, b}, 2, number);
}

typedef struct pair {
    uint32_t a, b, number;
} pair;

/* Where a byte leads from a and b, given where another one does: most lead to the same. */
static bool step(product *all, uint32_t a, uint32_t b, uint8_t byte, pair *to) {
    const pair before = *to;
    to->a = gb_byte_step(&all->of_a, a, byte);
    to->b = to->a != GB_DEAD || has_units(all) ? step_in_b(all, b, byte) : GB_DEAD;
    if (to->a == before.a && to->b == before.b)
        return true;
    return number_of(all, to->a, to->b, &to->number);
}

static bool add_row(product *all, uint32_t state) {
    gb_dfa *dfa = all->dfa;
    size_t classes = dfa->class_count;
    uint32_t a = gb_interned(&all->pairs, state)[0], b = gb_interned(&all->pairs, state)[1];
    if (!gb_grow((void **)&dfa->rows, &all->row_capacity, (state + 1) * classes, sizeof *dfa->rows) ||
        !gb_grow((void **)&dfa->accepts, &all->accept_capacity, state + (size_t)1, 1) ||
        !gb_grow((void **)&dfa->ends_unit, &all->unit_capacity, state + (size_t)1, 1))
        return false;
    bool in_b = all->of_b.traits[b] & GB_MAY_END;
    dfa->accepts[state] =
        (all->of_a.traits[a] & GB_MAY_END) && in_b == (all->kind != GB_PRODUCT_EXCEPT) ? 1 : 0;
    dfa->ends_unit[state] = has_units(all) && b == all->unit_end;
    pair last = {GB_DEAD, GB_DEAD, GB_NO_STATE};
    for (size_t class = 0; class < classes; class ++) {
        if (!step(all, a, b, all->first_byte[class], &last))
            return false;
        dfa->rows[state * classes + class] = last.number;
    }
    dfa->count = state + (size_t)1;
    return true;
}

/* The configuration of a unit that is complete, which has no moves. */
static uint32_t end_of_unit(gb_configurations *unit) {
    gb_closure_clear(&unit->closure);
    gb_closure_add(&unit->closure, GB_END_STATE, 0);
    return gb_configuration_of_closure(unit);
}

static bool add_start(product *all) {
    uint32_t start, b = gb_start_configuration(&all->of_b);
    if (has_units(all)) {
        all->is_ambiguous = all->of_b.traits[b] & GB_MAY_END;
        all->unit_start = b;
        b = all->unit_end = end_of_unit(&all->of_b);
    }
    return number_of(all, gb_start_configuration(&all->of_a), b, &start);
}

static gumbel_status explore(product *all, const gb_dfa_limits *limits) {
    if (!add_start(all))
        return GUMBEL_ERROR_MEMORY;
    for (uint32_t state = 0; state < all->pairs.count; state++) {
        if (state >= limits->states)
            return GUMBEL_ERROR_LIMIT;
        if (!gb_watch_goes_on(limits->watch, all->dfa->class_count * 4))
            return limits->watch->error.status;
        if (!add_row(all, state))
            return GUMBEL_ERROR_MEMORY;
        if (all->is_ambiguous)
            return GUMBEL_ERROR_UNSUPPORTED;
        if (all->of_a.status != GUMBEL_OK || all->of_b.status != GUMBEL_OK)
            break;
    }
    return all->of_a.status ? all->of_a.status : all->of_b.status;
}

gumbel_status gb_dfa_of_product(const gb_automaton *a, const gb_automaton *b, gb_product kind,
                                const gb_dfa_limits *limits, gb_dfa *dfa) {
    *dfa = (gb_dfa){0};
    product all = {.kind = kind, .dfa = dfa};
    bool begun = find_classes(&all, a, b);
    begun = gb_configurations_begin(&all.of_a, a, STACK_LIMIT, limits->work) && begun;
    begun = gb_configurations_begin(&all.of_b, b, STACK_LIMIT, limits->work) && begun;
    gumbel_status status = begun ? explore(&all, limits) : GUMBEL_ERROR_MEMORY;
    if (status == GUMBEL_OK && !gb_dfa_trim(dfa))
        status = GUMBEL_ERROR_MEMORY;
    gb_configurations_free(&all.of_a);
    gb_configurations_free(&all.of_b);
    gb_intern_free(&all.pairs);
    if (status != GUMBEL_OK)
        gb_dfa_free(dfa);
    return status;
}
