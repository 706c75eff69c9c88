/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are counted in units, such as the characters of a string: how many more of them may follow each
 * state of their automaton. What is known by these numbers can end within any bounds without a copy of the
 * automaton for each count.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_LENGTHS_H
#define GUMBEL_GRAMMAR_COMPILE_LENGTHS_H

#include "grammar/compile/dfa.h"

/* Fills dfa->lengths of an automaton that gb_dfa_of_product made of units, up to `most` units. Errors: LIMIT
 * (more than limits->work steps), that of the watch, MEMORY. */
gumbel_status gb_find_lengths(gb_dfa *dfa, uint32_t most, const gb_dfa_limits *limits);
void gb_lengths_free(gb_lengths *lengths);

/* Whether least to most units may follow a state. */
bool gb_has_length(const gb_dfa *dfa, uint32_t state, uint32_t least, uint32_t most);

/* Adds its states to an automaton, behind a count of least to most units; where the text ends it goes on to
 * next. Returns the start state, GB_NO_STATE where there is no text. */
uint32_t gb_emit_units(const gb_dfa *dfa, gb_automaton *automaton, uint32_t least, uint32_t most,
                       uint32_t next);

#endif
