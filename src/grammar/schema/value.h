/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of any type under a list of schemas.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_VALUE_H
#define GUMBEL_GRAMMAR_SCHEMA_VALUE_H

#include "grammar/schema/reader/reader.h"

/* Defines the rules of arrays and objects that wait for it, and those that they bring. */
void gb_express_waiting(gb_schema_reader *reader);

/* Strings with quotes, in their one spelling, that the schemas allow as keys. */
gb_expression gb_express_keys(gb_schema_reader *reader, const gb_terms *terms);

#endif
