/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of negate.c: what a keyword does not allow, as a schema. Each function gives a new one, or NULL where
 * memory is short or the error is set.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NEGATE_NEGATION_H
#define GUMBEL_GRAMMAR_SCHEMA_NEGATE_NEGATION_H

#include "grammar/common/build_json.h"
#include "grammar/schema/negate/negate.h"
#include "grammar/schema/reader/keywords.h"

#include <string.h>

typedef struct gb_negation {
    gb_schema_reader *reader;
    const json_t *schema; /* with its keyword: where an error is reported */
    const char *keyword;
    unsigned depth;
} gb_negation;

/* schema has the key, with this value. */
typedef json_t *gb_negate_keyword(gb_negation *at, const json_t *schema, const char *key, json_t *value);

gb_negate_keyword gb_negate_leave_out, gb_negate_values, gb_negate_pattern, gb_negate_format,
    gb_negate_multiple, gb_negate_bound, gb_negate_count;
gb_negate_keyword gb_negate_required, gb_negate_properties, gb_negate_patterns, gb_negate_other_members,
    gb_negate_names, gb_negate_dependencies;
gb_negate_keyword gb_negate_items, gb_negate_prefix_items, gb_negate_other_items, gb_negate_contains;
gb_negate_keyword gb_negate_branches, gb_negate_one_of, gb_negate_not, gb_negate_if, gb_negate_unevaluated;
gb_negate_keyword gb_refuse_negation;

/* Of branches of a oneOf, which are taken in pairs, and of first items. */
enum { GB_MOST_NEGATED = 256 };

/* Fails for more than that. Returns NULL. */
json_t *gb_refuse_many(gb_negation *at, const char *key);

/* What a schema does not allow. */
json_t *gb_negate_schema(gb_negation *at, const json_t *negated);

/* {"anyOf": parts}, which is false without any. Takes parts; NULL if it is. */
json_t *gb_any_of(json_t *parts);

/* {"allOf": [a, b]}. Takes both, either of which may be NULL. */
json_t *gb_all_of_two(json_t *a, json_t *b);

#endif
