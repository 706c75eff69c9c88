/* SPDX-License-Identifier: Apache-2.0
 *
 * Applicators that are said by other schemas: not, if/then/else, dependentRequired, dependentSchemas,
 * dependencies.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_REWRITE_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_REWRITE_H

#include "grammar/schema/reader/reader.h"

/* Adds schemas, which the reader owns, that ask together what the schema's keywords of these do. False on an
 * error. A `not` that gb_excluded gives is left. */
bool gb_rewrite(gb_schema_reader *reader, const json_t *schema, gb_terms *made);

/* The schema's `not`, if all that it has is type, enum, const, pattern, format or multipleOf: values that the
 * expression of a type leaves out, but for arrays and objects. Otherwise NULL. */
const json_t *gb_excluded(const json_t *schema);

#endif
