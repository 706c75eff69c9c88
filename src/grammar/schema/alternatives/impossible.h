/* SPDX-License-Identifier: Apache-2.0
 *
 * Assertions that no value can satisfy, as far as can be seen without their expression.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_IMPOSSIBLE_H
#define GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_IMPOSSIBLE_H

#include "grammar/schema/reader/reader.h"

/* look: levels of required members and items to look at. True as well on an error. */
bool gb_is_impossible(gb_schema_reader *reader, const gb_terms *terms, unsigned look);

#endif
