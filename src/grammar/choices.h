/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of texts, of which an answer is one.
 */
#ifndef GUMBEL_GRAMMAR_CHOICES_H
#define GUMBEL_GRAMMAR_CHOICES_H

#include "grammar/expression.h"

/* The texts of a JSON array of strings; 0 on an error: FORMAT (no such array, an empty one), and those of
 * expressions. */
gb_expression gb_read_choices(gb_expressions *expressions, const char *text, gumbel_error *error);

#endif
