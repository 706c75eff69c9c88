/* SPDX-License-Identifier: Apache-2.0
 *
 * Deterministic automata over bytes: intersections and differences.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_DFA_H
#define GUMBEL_GRAMMAR_COMPILE_DFA_H

#include "grammar/compile/automaton.h"

/* How many units may follow a state (lengths.h). */
typedef struct gb_lengths {
    gb_interval *spans;
    uint32_t *starts; /* by state: spans[starts[state], starts[state + 1]); NULL: unknown */
    uint32_t turn, period;
    uint64_t steps; /* that finding them took */
} gb_lengths;

/* State 0 is the start. Every state leads to one that accepts, unless there is no text at all: then there are
 * no states. */
typedef struct gb_dfa {
    size_t count, class_count;
    uint8_t class_of[256];
    gb_byte_set *class_bytes; /* [class_count] */
    uint32_t *rows;           /* [count][class_count]: a state, or GB_NO_STATE */
    uint8_t *accepts;         /* [count] */
    uint8_t *ends_unit;       /* [count] whether a move to it ends a unit; all 0 but of GB_PRODUCT_UNITS */
    gb_lengths lengths;
} gb_dfa;

/* UNITS: the texts of a that are one or more of b after one another, or none. */
typedef enum gb_product { GB_PRODUCT_BOTH, GB_PRODUCT_EXCEPT, GB_PRODUCT_UNITS } gb_product;

/* How far gb_dfa_of_product goes. */
typedef struct gb_dfa_limits {
    size_t states;
    uint64_t work;
    gb_watch *watch; /* NULL: none */
} gb_dfa_limits;

/* The texts of both flat automata, or of a and not of b, or of a in units of b. Errors: LIMIT (more than so
 * many states, too much work), UNSUPPORTED (a text of a unit begins another one, or is empty), that of the
 * watch, MEMORY. On an error dfa is empty. */
gumbel_status gb_dfa_of_product(const gb_automaton *a, const gb_automaton *b, gb_product product,
                                const gb_dfa_limits *limits, gb_dfa *dfa);
void gb_dfa_free(gb_dfa *dfa);

/* Leaves out the states that lead to none that accepts. False without memory. */
bool gb_dfa_trim(gb_dfa *dfa);

/* Adds its states to an automaton; where the text ends it goes on to next. `nonempty` leaves the empty text
 * out. Returns the start state, GB_NO_STATE where there is no text. */
uint32_t gb_dfa_emit(const gb_dfa *dfa, gb_automaton *automaton, uint32_t next, bool nonempty);

/* Adds the moves of a state to the last state of the automaton; base: where state 0 is. */
void gb_dfa_emit_moves(const gb_dfa *dfa, gb_automaton *automaton, uint32_t state, uint32_t base);

#endif
