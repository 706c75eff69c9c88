/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that schemas together do not allow.
 */
#include "grammar/schema/negate/negation.h"
#include "grammar/schema/rewrite/unevaluated.h"

/* Each of them negated. */
static json_t *negate_each(gb_negation *at, const json_t *schemas) {
    json_t *parts = json_array();
    for (size_t i = 0; parts && i < json_array_size(schemas); i++)
        parts = gb_append_value(parts, gb_negate_schema(at, json_array_get(schemas, i)));
    return parts;
}

/* allOf becomes anyOf, and anyOf allOf, of what is negated. */
json_t *gb_negate_branches(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)schema;
    json_t *parts = negate_each(at, value);
    return parts && strcmp(key, "allOf") != 0 ? json_pack("{s:o}", "allOf", parts) : gb_any_of(parts);
}

/* None of them holds, or two do. */
json_t *gb_negate_one_of(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)schema;
    const size_t count = json_array_size(value);
    if (count > GB_MOST_NEGATED)
        return gb_refuse_many(at, key);
    json_t *parts = json_pack("[{s:o}]", "allOf", negate_each(at, value));
    for (size_t a = 0; a < count; a++)
        for (size_t b = a + 1; parts && b < count; b++)
            parts = gb_append_value(parts, gb_all_of_two(json_incref(json_array_get(value, a)),
                                                         json_incref(json_array_get(value, b))));
    return gb_any_of(parts);
}

json_t *gb_negate_not(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    (void)schema;
    (void)key;
    return json_incref(value);
}

/* The condition holds and `then` does not, or neither it nor `else` does. */
json_t *gb_negate_if(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    const json_t *then = json_object_get(schema, "then"), *otherwise = json_object_get(schema, "else");
    json_t *parts = json_array();
    (void)key;
    if (parts && then)
        parts = gb_append_value(parts, gb_all_of_two(json_incref(value), gb_negate_schema(at, then)));
    if (parts && otherwise)
        parts = gb_append_value(parts,
                                gb_all_of_two(gb_negate_schema(at, value), gb_negate_schema(at, otherwise)));
    return gb_any_of(parts);
}

/* What it is said by is negated. */
json_t *gb_negate_unevaluated(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    const json_t *said = gb_unevaluated(at->reader, schema, key);
    (void)value;
    return said ? gb_negate_later(said) : NULL;
}
