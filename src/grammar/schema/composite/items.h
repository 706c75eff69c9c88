/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of arrays.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_ITEMS_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_ITEMS_H

#include "grammar/schema/reader/keywords.h"

/* The item at this index, which is what `also` asks as well (NULL: nothing), and the white space behind it.
 */
gb_expression gb_express_item(gb_schema_reader *reader, const gb_terms *terms, size_t index,
                              const gb_terms *also);

/* An array of items as the terms ask, but for uniqueItems and contains. */
gb_expression gb_express_any_items(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts);

/* The content, or the empty text where there may be no item, in brackets. */
gb_expression gb_in_brackets(gb_schema_reader *reader, gb_expression content, bool may_be_empty);

/* Whether the terms have uniqueItems, which asks something of two items. */
bool gb_asks_unique(gb_schema_reader *reader, const gb_terms *terms);

/* The array whose items differ. Errors: UNSUPPORTED where that cannot be had. */
gb_expression gb_express_unique(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts);

#endif
