/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/unevaluated.h"

#include "grammar/common/build_json.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/evaluated.h"
#include "grammar/schema/rewrite/evaluations.h"
#include "grammar/schema/rewrite/made.h"

#include <string.h>

static const char of_members[] = "unevaluatedProperties", of_items[] = "unevaluatedItems";

/* All is evaluated: only the conditions of that stay. */
static json_t *ask_conditions(json_t *evaluation) {
    json_t *conditions = json_object_get(evaluation, "allOf");
    json_t *asked = conditions ? json_pack("{s:O}", "allOf", conditions) : json_true();
    json_decref(evaluation);
    return asked;
}

/* Takes the evaluation, which becomes a schema where all other members satisfy `value`. */
static json_t *ask_of_members(json_t *evaluation, json_t *value) {
    return gb_evaluates_all(evaluation)
               ? ask_conditions(evaluation)
               : gb_set_member(evaluation, "additionalProperties", json_incref(value));
}

/* The same of items, of which those count that satisfy none of `contains`. */
static json_t *ask_of_items(json_t *evaluation, json_t *value) {
    json_t *contained = json_incref(json_object_get(evaluation, "contains"));
    if (gb_evaluates_all(evaluation)) {
        json_decref(contained);
        return ask_conditions(evaluation);
    }
    if (!contained)
        return gb_set_member(evaluation, "items", json_incref(value));
    json_object_del(evaluation, "contains");
    contained = gb_append_value(contained, json_incref(value));
    return gb_set_member(evaluation, "items", json_pack("{s:o}", "anyOf", contained));
}

/* Takes the list: one of its schemas holds. */
static json_t *one_of_them(json_t *schemas) {
    json_t *one = json_array_size(schemas) == 1 ? json_incref(json_array_get(schemas, 0)) : json_object();
    const bool is_made =
        schemas && one &&
        (json_array_size(schemas) == 1 || json_object_set_nocheck(one, GB_EVALUATED, schemas) == 0);
    json_decref(schemas);
    if (is_made)
        return one;
    json_decref(one);
    return NULL;
}

static bool asks_nothing(const json_t *value) {
    return json_is_true(value) || (json_is_object(value) && json_object_size(value) == 0);
}

static json_t *rewrite(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    json_t *value = json_object_get(schema, keyword), *made = json_array();
    if (!json_is_object(value) && !json_is_boolean(value))
        gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT,
                       "expected a schema: an object or a boolean");
    json_t *evaluated = asks_nothing(value) ? json_array() : gb_evaluated(reader, schema, keyword);
    for (size_t i = 0; made && i < json_array_size(evaluated); i++) {
        json_t *evaluation = json_incref(json_array_get(evaluated, i));
        made = gb_append_value(made, strcmp(keyword, of_items) == 0 ? ask_of_items(evaluation, value)
                                                                    : ask_of_members(evaluation, value));
    }
    const bool is_found = evaluated && made && !gb_schema_failed(reader);
    json_decref(evaluated);
    if (is_found && json_array_size(made) > 0)
        return one_of_them(made);
    json_decref(made);
    return is_found ? json_true() : NULL;
}

static json_t *rewrite_members(gb_schema_reader *reader, const json_t *schema) {
    return rewrite(reader, schema, of_members);
}

static json_t *rewrite_items(gb_schema_reader *reader, const json_t *schema) {
    return rewrite(reader, schema, of_items);
}

const json_t *gb_unevaluated(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    return strcmp(keyword, of_items) == 0 ? gb_rewritten(reader, schema, of_items, rewrite_items)
                                          : gb_rewritten(reader, schema, of_members, rewrite_members);
}
