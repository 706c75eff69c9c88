/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that a schema lists (enum, const), under everything else that is asked of them.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_CANDIDATES_H
#define GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_CANDIDATES_H

#include "grammar/schema/reader/reader.h"

/* How many values the terms list at most: those of their first const or enum. SIZE_MAX: they list none. */
size_t gb_candidate_count(gb_schema_reader *reader, const gb_terms *terms);
const json_t *gb_candidate(const gb_terms *terms, size_t index);

/* Whether the value breaks one of the terms, but for patterns, formats and what members and items are asked.
 */
bool gb_value_fails(gb_schema_reader *reader, const gb_terms *terms, const json_t *value);

/* The value as the terms, assertions alone, allow it: `nothing` if they do not. */
gb_expression gb_express_candidate(gb_schema_reader *reader, const gb_terms *terms, const json_t *value);

/* The value under any schemas. */
gb_expression gb_express_literal(gb_schema_reader *reader, const gb_terms *terms, const json_t *value);

/* Whether the schema alone allows the value, or a name of a member. False as well on an error. */
bool gb_allows(gb_schema_reader *reader, const json_t *schema, const json_t *value);
bool gb_allows_name(gb_schema_reader *reader, const json_t *schema, const char *name);

#endif
