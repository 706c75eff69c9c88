/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a short text is one of an expression's, seen on the expression itself: for a few texts no automaton
 * is worth making.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_SHORT_TEXTS_H
#define GUMBEL_GRAMMAR_COMPILE_SHORT_TEXTS_H

#include "grammar/expression.h"

#define GB_MAX_SHORT_TEXT 63

typedef enum gb_text_place {
    GB_TEXT_IS_OUT,
    GB_TEXT_IS_IN,
    GB_TEXT_IS_UNKNOWN /* a longer text, too many steps, or an expression with a rule, a token or any_order */
} gb_text_place;

/* Takes at most *steps of a few nanoseconds each, and leaves there how many it took. */
gb_text_place gb_try_short_text(const gb_expressions *expressions, gb_expression expression,
                                const uint8_t *text, size_t size, uint64_t *steps);

#endif
