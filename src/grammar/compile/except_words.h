/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts but for some words, such as the keys that no member has as its name: the words' trie in front of the
 * automaton of the texts, without a product of two.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_EXCEPT_WORDS_H
#define GUMBEL_GRAMMAR_COMPILE_EXCEPT_WORDS_H

#include "grammar/compile/compiler.h"

/* Whether the expression is a text, or a choice of texts. */
bool gb_are_words(const gb_expressions *expressions, gb_expression expression);

/* The texts of an automaton but for the words of an expression that has no others. Errors: LIMIT (more than
 * so many states), that of the watch, MEMORY. On an error dfa is empty. */
gumbel_status gb_dfa_except_words(const gb_dfa *all, const gb_expressions *expressions, gb_expression words,
                                  const gb_dfa_limits *limits, gb_dfa *dfa);

#endif
