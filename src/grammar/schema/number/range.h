/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers without an exponent on one side of a bound. Texts are -?(0|[1-9][0-9]*)(\.[0-9]+)?, and zero may
 * have a sign.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NUMBER_RANGE_H
#define GUMBEL_GRAMMAR_SCHEMA_NUMBER_RANGE_H

#include "grammar/schema/number/decimal.h"
#include "grammar/schema/reader/reader.h"

gb_expression gb_express_at_least(gb_schema_reader *reader, const gb_decimal *bound, bool exclusive);
gb_expression gb_express_at_most(gb_schema_reader *reader, const gb_decimal *bound, bool exclusive);

#endif
