/* SPDX-License-Identifier: Apache-2.0
 *
 * The schemas of members of objects and of items of arrays.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_MEMBERS_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_MEMBERS_H

#include "grammar/schema/reader/reader.h"

/* Adds what the terms of an object ask of the member with this name. False on an error. */
bool gb_member_terms(gb_schema_reader *reader, const gb_terms *terms, const char *name, gb_terms *member);

/* Adds what they ask of a member that no properties name, whose name the patterns with bits in `matched`
 * match and the other ones of `patterns` do not. */
bool gb_other_member_terms(gb_schema_reader *reader, const gb_terms *terms, const json_t *patterns,
                           uint64_t matched, gb_terms *member);

/* Adds what they ask of the names of members. */
bool gb_name_terms(gb_schema_reader *reader, const gb_terms *terms, gb_terms *names);

/* Adds what the terms of an array ask of the item at this index. */
bool gb_item_terms(gb_schema_reader *reader, const gb_terms *terms, size_t index, gb_terms *item);

/* From which index on all items are asked the same. */
size_t gb_prefix_count(gb_schema_reader *reader, const gb_terms *terms);

#endif
