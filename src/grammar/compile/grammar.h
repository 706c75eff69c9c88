/* SPDX-License-Identifier: Apache-2.0
 *
 * What a compiled grammar is made of.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_GRAMMAR_H
#define GUMBEL_GRAMMAR_COMPILE_GRAMMAR_H

#include "grammar/compile/automaton.h"
#include "grammar/grammar.h"

struct gb_grammar {
    gb_automaton automaton;
    struct gb_match_caches *caches; /* owned */
};

#endif
