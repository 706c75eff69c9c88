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

/* Gives a new schema; NULL where the error is. */
typedef json_t *gb_rewriter(gb_schema_reader *reader, const json_t *schema);

/* What the schema is rewritten to for a keyword, whose address counts; made once, since terms are known by
 * the addresses of their schemas. NULL on an error. */
const json_t *gb_rewritten(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                           gb_rewriter *rewrite);

/* Has the reader own a schema that stands for parts of another one, which errors name. Takes the schema.
 * NULL, with the error, without memory. */
const json_t *gb_keep_schema(gb_schema_reader *reader, json_t *schema, const json_t *source);

/* The schema's `not`, if all that it has is type, enum, const, pattern or format: values that the expression
 * of a type leaves out. Otherwise NULL. */
const json_t *gb_excluded(const json_t *schema);

#endif
