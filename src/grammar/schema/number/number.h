/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers: bounds, multiples, and values that are left out.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NUMBER_NUMBER_H
#define GUMBEL_GRAMMAR_SCHEMA_NUMBER_NUMBER_H

#include "grammar/schema/number/decimal.h"
#include "grammar/schema/reader/reader.h"

typedef struct gb_bound {
    bool exists, exclusive;
    gb_decimal value;
} gb_bound;

typedef struct gb_bounds {
    gb_bound least, most;
} gb_bounds;

/* Reads a number of the schema's keyword. False on an error. */
bool gb_read_decimal(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                     const json_t *number, gb_decimal *decimal);

/* What all terms together say with minimum, maximum, exclusiveMinimum, exclusiveMaximum and formats of
 * integers. False on an error. */
bool gb_read_bounds(gb_schema_reader *reader, const gb_terms *terms, gb_bounds *bounds);

/* Whether no number is between the bounds. */
bool gb_bounds_are_empty(const gb_bounds *bounds);

/* Whether the number is within the bounds. */
bool gb_is_within(const gb_bounds *bounds, const gb_decimal *value);

/* Numbers of the types (GB_TYPE_INTEGER, GB_TYPE_FRACTION or both) that the terms allow. */
gb_expression gb_express_number(gb_schema_reader *reader, const gb_terms *terms, unsigned types);

#endif
