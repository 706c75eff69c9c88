/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions that requests ask for by name: lists of choices, and any JSON.
 */
#ifndef GUMBEL_GRAMMAR_COMMON_COMMON_H
#define GUMBEL_GRAMMAR_COMMON_COMMON_H

#include "grammar/expression.h"

/* Any one of these texts, each of its size in bytes. Errors: ARGUMENT (no choices). */
gb_expression gb_express_choices(gb_expressions *expressions, const char *const *texts, const size_t *sizes,
                                 size_t count);

/* Any JSON value, or any object. Between tokens stands nothing, a space, or a new line and up to 20 spaces
 * and tabs, so that white space has an end. */
gb_expression gb_express_any_json(gb_expressions *expressions);
gb_expression gb_express_any_json_object(gb_expressions *expressions);

/* What may stand in a JSON string for one character: itself or an escape; halves of surrogate pairs stand
 * together. */
gb_expression gb_express_json_character(gb_expressions *expressions);

#endif
