/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are equal where their texts are.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_ONE_SPELLING_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_ONE_SPELLING_H

#include "grammar/schema/reader/reader.h"

/* Strings, numbers, booleans and null that the terms allow, each in one spelling of its own. 0: an error, or
 * without one that they allow arrays, objects or listed values of which that cannot be had. */
gb_expression gb_express_one_spelling(gb_schema_reader *reader, const gb_terms *terms);

#endif
