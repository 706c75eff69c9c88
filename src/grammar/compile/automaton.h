/* SPDX-License-Identifier: Apache-2.0
 *
 * What a grammar is compiled to: states of a pushdown automaton over bytes. A state has moves over sets of
 * bytes, and an action that takes no byte. Calls, counted repeats and items in any order push a frame, which
 * says where to go on when the part below them ends.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_AUTOMATON_H
#define GUMBEL_GRAMMAR_COMPILE_AUTOMATON_H

#include "grammar/nodes.h"

typedef enum gb_action {
    GB_ACTION_NONE,
    GB_ACTION_GO,          /* to next */
    GB_ACTION_FORK,        /* to forks[argument, argument + next) */
    GB_ACTION_CALL,        /* to argument, and to next when that ends */
    GB_ACTION_COUNT,       /* counts[argument], then next */
    GB_ACTION_GATE,        /* gates[argument] of the frame on top, then next */
    GB_ACTION_ORDER,       /* orders[argument], then next */
    GB_ACTION_DISTINCT,    /* distincts[argument], then next */
    GB_ACTION_TOKEN,       /* over the token argument to next */
    GB_ACTION_OTHER_TOKEN, /* over any other token to next */
    GB_ACTION_END          /* of what the frame on top was pushed for; without a frame, of the text */
} gb_action;

typedef struct gb_automaton_state {
    uint32_t first_move, move_count;
    uint32_t action, argument, next;
} gb_automaton_state;

typedef struct gb_move {
    uint32_t set, target;
} gb_move;

/* A repeat of the part that begins at item, or a text of so many units, which gates count. Its count goes no
 * further than `last`, from where on all counts mean the same. So do those that are `below` or more under
 * least, and those from least on that are `above` or more under most. */
typedef struct gb_count {
    uint32_t item, least, most, last;
    uint32_t below, above;
    uint32_t turn, period; /* of the numbers of its gates */
    bool has_units;
} gb_count;

/* Numbers from first to last. */
typedef struct gb_interval {
    uint32_t first, last;
} gb_interval;

/* How many units may follow: spans[first, first + count). ends_unit: one is complete here. */
typedef struct gb_gate {
    uint32_t first, count;
    bool ends_unit;
} gb_gate;

/* Numbers in their order: those of spans, and from `turn` on the same again after each period; period 0: no
 * others. */
typedef struct gb_numbers {
    const gb_interval *spans;
    uint32_t count, turn, period;
} gb_numbers;

#define GB_NO_NUMBER UINT64_MAX

/* Items in any order; those that are required stand first. Sets of them have a bit for each item, in
 * gb_set_words(count) words. */
typedef struct gb_order_part {
    uint32_t first, count, required; /* forks[first, first + count): where the items begin */
    uint32_t separator;              /* state */
    uint32_t rest;                   /* state, or GB_NO_STATE */
    uint32_t least, most;
    uint32_t implied; /* forks[implied + i * words]: the items that i needs, a bit each; GB_NO_STATE: none */
} gb_order_part;

/* Items that all differ, least to most of them, which are no more than there are texts. `item` begins a
 * deterministic automaton; forks[texts + i]: how many texts lead from its state item + i to an end,
 * GB_NO_END: any number. Items are counted no further than `last`. */
typedef struct gb_distinct_part {
    uint32_t item, separator; /* states; GB_NO_STATE: no separator */
    uint32_t least, most, last;
    uint32_t texts;
} gb_distinct_part;

static inline uint32_t gb_set_words(uint32_t count) {
    return (count + 31) / 32;
}

#define GB_NO_STATE UINT32_MAX
#define GB_END_STATE 0u

typedef struct gb_automaton {
    gb_automaton_state *states;
    size_t state_count, state_capacity, state_limit;
    gb_move *moves;
    size_t move_count, move_capacity;
    uint32_t *forks;
    size_t fork_count, fork_capacity;
    gb_count *counts;
    size_t count_count, count_capacity;
    gb_gate *gates;
    size_t gate_count, gate_capacity;
    gb_interval *spans;
    size_t span_count, span_capacity;
    gb_order_part *orders;
    size_t order_count, order_capacity;
    gb_distinct_part *distincts;
    size_t distinct_count, distinct_capacity;
    gb_byte_set *sets;
    size_t set_count, set_capacity;
    uint32_t *set_slots; /* a hash table from a set to its index + 1 */
    size_t set_slot_count;
    uint32_t start;
    bool failed; /* memory ran out */
    bool full;   /* state_limit was reached */

    /* Made by gb_automaton_finish. Bytes of one class are in the same sets; where items must differ each byte
     * is the class of its own number. */
    uint8_t class_of[256];
    uint32_t class_count;
    uint64_t *set_classes; /* [set_count][4]: bit c: class c is in the set */
} gb_automaton;

/* An automaton with the end state alone. */
void gb_automaton_begin(gb_automaton *automaton, size_t state_limit);
void gb_automaton_free(gb_automaton *automaton);

/* Each gives the new state, or GB_NO_STATE after an error (`failed`, `full`). */
uint32_t gb_add_state(gb_automaton *automaton, gb_action action, uint32_t argument, uint32_t next);
uint32_t gb_add_byte_state(gb_automaton *automaton, const gb_byte_set *set, uint32_t target);
uint32_t gb_add_fork(gb_automaton *automaton, const uint32_t *targets, size_t count);

/* Adds moves to the last state that was added. */
void gb_add_move(gb_automaton *automaton, const gb_byte_set *set, uint32_t target);

/* Appends to forks; the index of the first. */
uint32_t gb_add_targets(gb_automaton *automaton, const uint32_t *targets, size_t count);

/* Appends to counts; false without memory. */
bool gb_add_count(gb_automaton *automaton, const gb_count *count);

/* The first of the numbers that is not less than `from`, or GB_NO_NUMBER. */
uint64_t gb_next_number(gb_numbers numbers, uint64_t from);

/* Finds the classes of bytes. Nothing may be added after it. */
void gb_automaton_finish(gb_automaton *automaton);

static inline bool gb_takes_token(const gb_automaton_state *state) {
    return state->action == GB_ACTION_TOKEN || state->action == GB_ACTION_OTHER_TOKEN;
}

static inline bool gb_set_has_class(const gb_automaton *automaton, uint32_t set, uint32_t class) {
    return automaton->set_classes[(size_t)set * 4 + class / 64] >> (class % 64) & 1u;
}

#endif
