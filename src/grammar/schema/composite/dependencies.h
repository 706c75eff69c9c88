/* SPDX-License-Identifier: Apache-2.0
 *
 * Members that require others: dependentRequired, and dependencies of draft 4 to 7 that list names.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_DEPENDENCIES_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_DEPENDENCIES_H

#include "grammar/schema/reader/keywords.h"

/* Whether the value of a dependency is names, and not a schema. */
static inline bool gb_are_names(const json_t *value) {
    return json_is_array(value) || json_is_string(value);
}

/* Adds to `needs` what the schema says: {"a": ["b", "c"]}, lists of names. False on an error. */
bool gb_read_dependencies(gb_schema_reader *reader, const json_t *schema, json_t *needs);

/* Whether the value, an object, has a member and lacks one that it requires. */
bool gb_lacks_dependency(gb_schema_reader *reader, const json_t *schema, const json_t *value);

#endif
