/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that have some member whose name and value are as two schemas ask (GB_SOME_MEMBER), which is what
 * the opposites of additionalProperties, patternProperties and propertyNames are.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_SOME_MEMBER_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_SOME_MEMBER_H

#include "grammar/schema/reader/reader.h"

/* An object under terms, which has for each of `demands` a member that no properties name. */
typedef gb_expression gb_express_demanded(gb_schema_reader *reader, const gb_terms *terms,
                                          const gb_terms *demands, bool is_tagged);

/* The objects in which each demand of the terms is met, be it by a named member or by another one. */
gb_expression gb_express_some_members(gb_schema_reader *reader, const gb_terms *terms, bool is_tagged,
                                      gb_express_demanded *express);

#endif
