/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways in which a value can satisfy all of a list of schemas: $ref and allOf add schemas to the list,
 * anyOf and oneOf branch. What is left are lists whose assertions hold together.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_ALTERNATIVES_H
#define GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_ALTERNATIVES_H

#include "grammar/schema/reader/reader.h"

/* Adds all that are possible, as far as is seen. False on an error. */
bool gb_find_alternatives(gb_schema_reader *reader, const gb_terms *terms, gb_alternatives *alternatives);

/* Whether there is one, as far as `look` levels show, overlaps of oneOf's branches not looked at. False also
 * on an error. look is GB_LOOK_DEPTH at most. */
bool gb_has_alternative(gb_schema_reader *reader, const gb_terms *terms, unsigned look);

void gb_alternatives_free(gb_alternatives *alternatives);

#endif
