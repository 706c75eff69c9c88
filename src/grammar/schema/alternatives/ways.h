/* SPDX-License-Identifier: Apache-2.0
 *
 * One way in which a value may satisfy schemas: the schemas that hold together in it, and which branches of
 * anyOf and oneOf they are.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_WAYS_H
#define GUMBEL_GRAMMAR_SCHEMA_ALTERNATIVES_WAYS_H

#include "grammar/schema/reader/reader.h"

/* Starts zeroed. */
typedef struct gb_way {
    gb_terms terms;
    gb_terms chosen; /* the arrays of anyOf and oneOf of which terms have a branch already */
    gb_terms left;   /* branches followed before: a way with one of them finds nothing new */
    size_t closed;   /* terms whose own ones are among the terms */
    bool impossible; /* a false is among them, or one that is left */
} gb_way;

void gb_way_free(gb_way *way);

/* All: false on an error. Adds a schema; adds all that the terms bring without a choice. */
bool gb_way_add(gb_schema_reader *reader, gb_way *way, const json_t *schema);
bool gb_way_close(gb_schema_reader *reader, gb_way *way);

/* The first branches that the terms have not chosen from, and do not satisfy as they are; NULL: there are
 * none, or an error. *schema has them as this keyword. */
const json_t *gb_way_choice(gb_schema_reader *reader, const gb_way *way, const json_t **schema,
                            const char **keyword);

/* The way with one more branch of a choice; the caller frees it, also after an error. */
bool gb_way_take(gb_schema_reader *reader, const gb_way *from, const json_t *branches, size_t index,
                 gb_way *taken);

#endif
