/* SPDX-License-Identifier: Apache-2.0
 *
 * contains, minContains and maxContains.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_CONTAINS_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_CONTAINS_H

#include "grammar/schema/reader/keywords.h"

/* How many items must satisfy the schema's `contains`; 0 or more where it has none. */
gb_counts gb_read_contains(gb_schema_reader *reader, const json_t *schema);

/* The index from which on its items count. */
size_t gb_contains_from(const json_t *schema);

/* Whether one of the terms asks that. */
bool gb_asks_contains(gb_schema_reader *reader, const gb_terms *terms);

/* The array whose items are so, where gb_asks_contains. Errors: UNSUPPORTED where that cannot be had. */
gb_expression gb_express_containing(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts);

#endif
