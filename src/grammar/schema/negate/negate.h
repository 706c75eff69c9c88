/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema of what another schema does not allow.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NEGATE_NEGATE_H
#define GUMBEL_GRAMMAR_SCHEMA_NEGATE_NEGATE_H

#include "grammar/schema/reader/reader.h"

/* `negated` is the value of keyword in schema. The caller owns the result, whose parts are shared. NULL, with
 * the error naming what is negated and cannot be. */
json_t *gb_negate(gb_schema_reader *reader, const json_t *schema, const char *keyword, const json_t *negated);

/* The same by a keyword (GB_NEGATED), so that what a schema is made of is negated once, and what stands in
 * itself ends. NULL without memory. */
json_t *gb_negate_later(const json_t *negated);

/* All that the schema does not allow, made once. NULL on an error, which names what cannot be negated. */
const json_t *gb_negated(gb_schema_reader *reader, const json_t *schema);

#endif
