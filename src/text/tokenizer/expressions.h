/* SPDX-License-Identifier: Apache-2.0
 *
 * The regular expressions of known tokenizers, listed in expressions.def.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_EXPRESSIONS_H
#define GUMBEL_TEXT_TOKENIZER_EXPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum gb_split_expression {
    GB_EXPRESSION_NONE = 0,
#define GB_EXPRESSION(name, is_linear, text) GB_EXPRESSION_##name,
#include "text/tokenizer/expressions.def"
#undef GB_EXPRESSION
    GB_EXPRESSION_COUNT
} gb_split_expression;

/* Its text, as pcre2 reads it; "" of GB_EXPRESSION_NONE. Valid for ever. */
const char *gb_split_expression_text(gb_split_expression expression);

/* The expression that the text is, character by character, or GB_EXPRESSION_NONE. */
gb_split_expression gb_split_expression_find(const char *text, size_t length);

/* Whether matching it, on any text, is known to go back no more often than the text is long. */
bool gb_split_expression_is_linear(gb_split_expression expression);

#endif
