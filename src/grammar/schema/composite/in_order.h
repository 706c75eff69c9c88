/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of an object in the order of its properties.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_IN_ORDER_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_IN_ORDER_H

#include "grammar/schema/reader/keywords.h"

/* The items in their order, those that are not required left out or not, then any number of `rest`
 * (reader->nothing: none), and the closing brace. schema is named where the counts cannot be honoured. */
gb_expression gb_express_in_order(gb_schema_reader *reader, const json_t *schema,
                                  const gb_any_order_item *items, size_t count, gb_expression rest,
                                  gb_counts counts);

#endif
