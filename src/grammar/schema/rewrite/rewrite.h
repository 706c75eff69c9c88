/* SPDX-License-Identifier: Apache-2.0
 *
 * Applicators that are said by other schemas: not, if/then/else, dependentRequired, dependentSchemas,
 * dependencies, unevaluatedProperties, unevaluatedItems.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_REWRITE_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_REWRITE_H

#include "grammar/schema/reader/reader.h"

/* Adds schemas, which the reader owns, that ask together what the schema's keywords of these do. False on an
 * error.  */
bool gb_rewrite(gb_schema_reader *reader, const json_t *schema, gb_terms *made);

/* What `if` is rewritten to beside then or else: {"anyOf": [where it holds, where it does not]}. NULL on an
 * error. */
const json_t *gb_rewritten_if(gb_schema_reader *reader, const json_t *schema);

/* What the schema leaves out (GB_EXCLUDED): it has one of type, enum, const, pattern, format and multipleOf,
 * and lists neither arrays nor objects. NULL: nothing. */
const json_t *gb_excluded(const json_t *schema);

#endif
