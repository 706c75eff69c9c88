/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Schema (drafts 4 to 2020-12) read into an expression: the JSON texts that the schema allows.
 * Annotations and what is not known are left out; everything else that a schema asks is honoured or refused
 * with the keyword's name and place.
 *
 * What is written differs from what a validator would take where it has to: a key or a string under a
 * pattern, a format or an enum has one spelling (\" \\ \b \f \n \r \t, \u00xx for other control characters,
 * the rest as it is); integers have no fraction and no exponent, and numbers under a bound seldom have one;
 * values of enum and const are written as the schema spells them, members in its order; `format` is asserted.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_SCHEMA_H
#define GUMBEL_GRAMMAR_SCHEMA_SCHEMA_H

#include "grammar/expression.h"
#include "grammar/schema/options.h"

#include <jansson.h>

/* The expression of all JSON texts that the schema allows, without white space around them; 0 on an error.
 * options may be NULL. Recursion becomes rules, whose names begin "schema". The schema is not kept.
 *
 * Errors: FORMAT (no JSON, or a keyword's value is of the wrong kind), UNSUPPORTED (what cannot be honoured),
 * LIMIT (size, depth, combinations), MEMORY, and whatever error the expressions had before. Each names the
 * keyword and its JSON pointer, and stays in the expressions. */
gb_expression gb_schema_express(gb_expressions *expressions, const json_t *schema,
                                const gb_schema_options *options, gumbel_error *error);

/* The same for length bytes of JSON text. */
gb_expression gb_schema_express_text(gb_expressions *expressions, const char *text, size_t length,
                                     const gb_schema_options *options, gumbel_error *error);

#endif
