/* SPDX-License-Identifier: Apache-2.0
 *
 * Which members and items of a value are evaluated by a schema and by those that it applies to the same value
 * (JSON Schema core 2020-12, 11).
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_EVALUATED_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_EVALUATED_H

#include "grammar/schema/reader/reader.h"

/* Where schema has `keyword`, unevaluatedProperties or unevaluatedItems: a list of what may be evaluated, at
 * least one of which is all that is. Each is a schema of its own: where its `allOf` holds, so are the members
 * that `properties` and `patternProperties` name, or the first items that `prefixItems` counts and those that
 * satisfy one of the list `contains`; all are where it has `additionalProperties` or `items`. The caller owns
 * the list. NULL on an error, or without memory. */
json_t *gb_evaluated(gb_schema_reader *reader, const json_t *schema, const char *keyword);

#endif
