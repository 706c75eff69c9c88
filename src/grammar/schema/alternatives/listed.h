/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether enum or const has a value, of which there may be hundreds of thousands.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_LISTED_H
#define GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_LISTED_H

#include "grammar/schema/reader/reader.h"

/* Equal as JSON values: 1 and 1.0 are, members have no order. */
bool gb_json_equal(const json_t *a, const json_t *b);

/* Whether an array has the value; it is made into a set when it is first asked. False also after an error. */
bool gb_array_has(gb_schema_reader *reader, const json_t *array, const json_t *value);

/* Whether const or enum of the schema (NULL: none) has the value. */
bool gb_is_listed(gb_schema_reader *reader, const json_t *schema, const json_t *value);

/* Whether two items of the array are equal. True as well on an error. */
bool gb_has_equal_items(gb_schema_reader *reader, const json_t *array);

/* Whether each of the schemas has a const, and no two of them an equal one. False also after an error. */
bool gb_have_different_consts(gb_schema_reader *reader, const json_t *schemas);

void gb_value_sets_free(gb_schema_reader *reader);

#endif
