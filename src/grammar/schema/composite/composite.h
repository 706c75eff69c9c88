/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON arrays and objects.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_COMPOSITE_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_COMPOSITE_H

#include "grammar/schema/reader/reader.h"

gb_expression gb_express_array(gb_schema_reader *reader, const gb_terms *terms);
gb_expression gb_express_object(gb_schema_reader *reader, const gb_terms *terms);

/* The members of an object as arguments that stand by themselves; at most one that no properties name. */
gb_expression gb_express_tagged_members(gb_schema_reader *reader, const gb_terms *terms);

#endif
