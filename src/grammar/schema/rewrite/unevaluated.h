/* SPDX-License-Identifier: Apache-2.0
 *
 * unevaluatedProperties and unevaluatedItems, said by schemas that name what is evaluated.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_UNEVALUATED_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_UNEVALUATED_H

#include "grammar/schema/reader/reader.h"

/* What asks, beside all else of the schema, as much as its keyword of these; made once. NULL on an error. */
const json_t *gb_unevaluated(gb_schema_reader *reader, const json_t *schema, const char *keyword);

#endif
