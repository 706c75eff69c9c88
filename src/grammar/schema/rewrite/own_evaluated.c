/* SPDX-License-Identifier: Apache-2.0
 *
 * Which members and items a schema evaluates by its own keywords.
 */
#include "grammar/common/build_json.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/evaluations.h"

#include <string.h>

enum { FIRST_WITH_CONTAINS = 2020 /* draft in which contains evaluates */ };

/* {"a": true} for each member of an object. */
static json_t *names_of(const json_t *object) {
    json_t *names = json_object(), *value;
    const char *name;
    json_object_foreach(gb_mutable(object), name, value) {
        if (!(names = gb_set_member(names, name, json_true())))
            break;
    }
    return names;
}

/* Whether it has the keyword that is honoured here, for which all is evaluated to schemas around it. */
static bool is_within(const gb_evaluating *at, const json_t *schema) {
    return schema != at->schema && json_object_get(schema, at->keyword);
}

static json_t *own_members(const gb_evaluating *at, const json_t *schema) {
    static const char *const keywords[] = {"properties", "patternProperties"};
    json_t *own = json_object();
    if (is_within(at, schema) || json_object_get(schema, "additionalProperties"))
        return gb_set_member(own, "additionalProperties", json_true());
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        const json_t *named = gb_keyword_object(at->reader, schema, keywords[i]);
        if (json_object_size(named) > 0)
            own = gb_set_member(own, keywords[i], names_of(named));
    }
    return own;
}

/* As many as a list has. */
static json_t *first_items(const json_t *list) {
    json_t *items = json_array();
    for (size_t i = 0; items && i < json_array_size(list); i++)
        items = gb_append_value(items, json_true());
    return items;
}

/* A list of items is that of the first ones in older drafts, and additionalItems counts beside it alone. */
static json_t *own_items(const gb_evaluating *at, const json_t *schema) {
    const json_t *items = json_object_get(schema, "items"), *contains = json_object_get(schema, "contains");
    const json_t *rest = json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
    const json_t *first = json_is_array(items) ? items : gb_keyword_array(at->reader, schema, "prefixItems");
    json_t *own = json_object();
    if (rest || is_within(at, schema))
        return gb_set_member(own, "items", json_true());
    if (json_array_size(first) > 0)
        own = gb_set_member(own, "prefixItems", first_items(first));
    if (contains && at->reader->draft >= FIRST_WITH_CONTAINS)
        own = gb_set_member(own, "contains", json_pack("[O]", contains));
    return own;
}

json_t *gb_evaluated_by_own(const gb_evaluating *at, const json_t *schema) {
    const bool is_of_items = strcmp(at->keyword, "unevaluatedItems") == 0;
    return gb_append_value(json_array(), is_of_items ? own_items(at, schema) : own_members(at, schema));
}
