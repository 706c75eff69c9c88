/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled grammar: expressions made into an automaton that matchers walk.
 */
#ifndef GUMBEL_GRAMMAR_GRAMMAR_H
#define GUMBEL_GRAMMAR_GRAMMAR_H

#include "grammar/expression.h"

/* Any number of threads may use it at once. */
typedef struct gb_grammar gb_grammar;

/* What compiling may cost, so that no grammar can hang a program; 0 is the default. */
typedef struct gb_grammar_limits {
    size_t states;         /* of the automaton: 1,000,000 */
    size_t dfa_states;     /* of one intersection or difference: 100,000 */
    uint64_t work;         /* steps of the compiler: 50,000,000 */
    size_t repeat_states;  /* of a repeat that is written out instead of counted: 64 */
    size_t product_states; /* of an intersection with a repeat, likewise: 4,096 */
} gb_grammar_limits;

/* Compiles root. Neither limits, which may be NULL, nor expressions are needed afterwards. Errors: the
 * expressions' own error; ARGUMENT (a rule without a definition, a rule that begins with itself, operands of
 * an intersection that are not regular, a grammar that allows no text); LIMIT; MEMORY. Destroy with
 * gb_grammar_destroy. */
gumbel_status gb_grammar_compile(const gb_expressions *expressions, gb_expression root,
                                 const gb_grammar_limits *limits, gb_grammar **grammar, gumbel_error *error);

/* NULL is allowed. Its matchers must be destroyed first. */
void gb_grammar_destroy(gb_grammar *grammar);

#endif
