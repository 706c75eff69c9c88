/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be evaluated where another evaluation finds as much, under fewer conditions.
 */
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/evaluations.h"

static bool has_item(const json_t *list, const json_t *item) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_array_get(list, i) == item)
            return true;
    return false;
}

/* Whether `more` has all schemas of the list that this key has. */
static bool has_list(const json_t *more, const json_t *less, const char *key) {
    const json_t *list = json_object_get(less, key), *longer = json_object_get(more, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!has_item(longer, json_array_get(list, i)))
            return false;
    return true;
}

static bool has_names(const json_t *more, const json_t *less, const char *key) {
    const json_t *names = json_object_get(less, key), *others = json_object_get(more, key);
    const char *name;
    json_t *value;
    if (json_object_size(names) > json_object_size(others))
        return false;
    json_object_foreach(gb_mutable(names), name, value) if (!json_object_get(others, name)) return false;
    return true;
}

bool gb_evaluates_all(const json_t *evaluation) {
    return json_object_get(evaluation, "additionalProperties") || json_object_get(evaluation, "items");
}

static bool covers(const json_t *more, const json_t *less) {
    if (!has_list(less, more, "allOf"))
        return false;
    if (gb_evaluates_all(more) || gb_evaluates_all(less))
        return gb_evaluates_all(more);
    return has_names(more, less, "properties") && has_names(more, less, "patternProperties") &&
           has_list(more, less, "contains") &&
           json_array_size(json_object_get(more, "prefixItems")) >=
               json_array_size(json_object_get(less, "prefixItems"));
}

bool gb_is_covered(const gb_evaluating *at, const json_t *list, const json_t *evaluation) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!gb_expressions_go_on(at->reader->expressions, GB_WATCH_STEPS / 64) ||
            covers(json_array_get(list, i), evaluation))
            return true;
    return false;
}
