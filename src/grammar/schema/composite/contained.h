/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of arrays with contains, without their brackets.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_CONTAINED_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_CONTAINED_H

#include "grammar/schema/composite/items.h"

/* Whether so many items are not what every array has. */
bool gb_contains_asks(gb_counts counts);

/* Fails naming the schema's contains. Returns 0. */
gb_expression gb_refuse_contains(gb_schema_reader *reader, const json_t *schema, const char *reason);

/* The item at this index, which is also as `more` asks. */
gb_expression gb_express_contained(gb_schema_reader *reader, const gb_terms *terms, size_t index,
                                   const json_t *more);

/* Items that are all asked what the one at index is, of which as many as the schema says satisfy its
 * contains. */
gb_expression gb_express_counted(gb_schema_reader *reader, const gb_terms *terms, const json_t *schema,
                                 size_t index, gb_counts counts);

/* The same beside prefixItems, and the items that satisfy contains of each of several schemas. */
gb_expression gb_express_beside_prefix(gb_schema_reader *reader, const gb_terms *terms, const json_t *schema,
                                       gb_counts counts);
gb_expression gb_express_groups(gb_schema_reader *reader, const gb_terms *terms, const gb_terms *asking,
                                gb_counts counts);

#endif
