/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/evaluations.h"

#include "grammar/common/build_json.h"
#include "grammar/schema/reader/keywords.h"

#include <string.h>

enum { MOST_EVALUATIONS = 256, MOST_NAMED = 1 << 20 };

json_t *gb_nothing_evaluated(void) {
    return gb_append_value(json_array(), json_object());
}

bool gb_is_nothing_evaluated(const json_t *list) {
    return json_array_size(list) == 1 && json_object_size(json_array_get(list, 0)) == 0;
}

/* Adds a member of another evaluation. False without memory. */
static bool merge(json_t *whole, const char *key, json_t *value) {
    json_t *held = json_object_get(whole, key);
    if (strcmp(key, "prefixItems") == 0 && json_array_size(held) >= json_array_size(value))
        return true;
    if (json_is_true(value) || strcmp(key, "prefixItems") == 0)
        return json_object_set(whole, key, value) == 0;
    if (!held) {
        held = json_is_object(value) ? json_object() : json_array();
        if (json_object_set_new(whole, key, held) != 0)
            return false;
    }
    return json_is_object(value) ? json_object_update(held, value) == 0 : json_array_extend(held, value) == 0;
}

static json_t *unite(const json_t *a, const json_t *b) {
    const json_t *const both[] = {a, b};
    json_t *whole = json_object(), *value;
    const char *key;
    for (size_t i = 0; i < 2; i++)
        json_object_foreach(gb_mutable(both[i]), key, value) {
            if (merge(whole, key, value))
                continue;
            json_decref(whole);
            return NULL;
        }
    return whole;
}

static size_t named_in(const json_t *evaluation) {
    return json_object_size(json_object_get(evaluation, "properties")) +
           json_object_size(json_object_get(evaluation, "patternProperties")) +
           json_array_size(json_object_get(evaluation, "prefixItems")) + 1;
}

static bool check_count(gb_evaluating *at, size_t count) {
    return count <= MOST_EVALUATIONS ||
           gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_UNSUPPORTED,
                          "beside more than %d ways in which other schemas evaluate members or items",
                          MOST_EVALUATIONS);
}

static bool check_size(gb_evaluating *at, const json_t *evaluation) {
    at->named += named_in(evaluation);
    return at->named <= MOST_NAMED || gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_LIMIT,
                                                     "other schemas evaluate too many members or items");
}

json_t *gb_evaluated_where(json_t *list, const json_t *schema) {
    json_t *evaluation;
    size_t i;
    bool is_added = list != NULL && schema != NULL;
    json_array_foreach(list, i, evaluation) {
        if (is_added && !json_object_get(evaluation, "allOf"))
            is_added = json_object_set_new(evaluation, "allOf", json_array()) == 0;
        is_added =
            is_added && json_array_append(json_object_get(evaluation, "allOf"), gb_mutable(schema)) == 0;
    }
    if (is_added)
        return list;
    json_decref(list);
    return NULL;
}

json_t *gb_evaluated_by_either(gb_evaluating *at, json_t *a, json_t *b) {
    const bool is_done =
        a && b && check_count(at, json_array_size(a) + json_array_size(b)) && json_array_extend(a, b) == 0;
    json_decref(b);
    if (is_done)
        return a;
    json_decref(a);
    return NULL;
}

/* Takes both; NULL, with the error, if the list is too long. */
static json_t *append(gb_evaluating *at, json_t *list, json_t *evaluation) {
    if (list && evaluation && check_size(at, evaluation) && gb_is_covered(at, list, evaluation)) {
        json_decref(evaluation);
        return list;
    }
    list = gb_append_value(list, evaluation);
    if (list && check_count(at, json_array_size(list)) && !gb_schema_failed(at->reader))
        return list;
    json_decref(list);
    return NULL;
}

/* Each of a with each of b. */
static json_t *combine(gb_evaluating *at, const json_t *a, const json_t *b) {
    const size_t count = json_array_size(b);
    json_t *all = json_array();
    for (size_t i = 0; all && i < json_array_size(a) * count; i++)
        all = append(at, all, unite(json_array_get(a, i / count), json_array_get(b, i % count)));
    return all;
}

/* Whether what another one evaluates changes nothing. */
static bool is_final(const json_t *list) {
    const json_t *first = json_array_get(list, 0);
    return json_array_size(list) == 1 && gb_evaluates_all(first) && !json_object_get(first, "allOf");
}

json_t *gb_evaluated_by_both(gb_evaluating *at, json_t *a, json_t *b) {
    const bool is_first = is_final(a) || gb_is_nothing_evaluated(b);
    const bool is_second = is_final(b) || gb_is_nothing_evaluated(a);
    json_t *both = !a || !b    ? NULL
                   : is_first  ? json_incref(a)
                   : is_second ? json_incref(b)
                               : combine(at, a, b);
    json_decref(a);
    json_decref(b);
    return both;
}
