/* SPDX-License-Identifier: Apache-2.0
 *
 * multipleOf.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NUMBER_MULTIPLE_H
#define GUMBEL_GRAMMAR_SCHEMA_NUMBER_MULTIPLE_H

#include "grammar/schema/reader/reader.h"

/* Numbers without an exponent that are multiples of the keyword's value; is_long: of any number of digits. */
gb_expression gb_express_multiple(gb_schema_reader *reader, const json_t *schema, const json_t *multiple,
                                  bool is_long);

#endif
