/* SPDX-License-Identifier: Apache-2.0
 *
 * Items that all differ. How many texts an item can still become says where it is bound to repeat one.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_DISTINCT_H
#define GUMBEL_GRAMMAR_COMPILE_DISTINCT_H

#include "grammar/compile/dfa.h"

/* By state, how many texts lead from it to an end; GB_NO_END: so many or more. NULL without memory; the
 * caller frees it. */
uint32_t *gb_count_texts(const gb_dfa *dfa);

/* Adds the items, of which dfa has the texts, to an automaton and goes on to next; the part has its separator
 * and bounds. GB_NO_STATE after an error, which the automaton has. */
uint32_t gb_emit_distinct(const gb_dfa *dfa, gb_automaton *automaton, gb_distinct_part part, uint32_t next);

#endif
