/* SPDX-License-Identifier: Apache-2.0
 *
 * To know less than all that is evaluated narrows what is allowed, and never widens it. So a schema that may
 * or may not hold counts in one way where it is asked, and in another, where it is not, as nothing.
 */
#include "grammar/schema/rewrite/evaluated.h"

#include "grammar/common/build_json.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/rewrite/evaluations.h"
#include "grammar/schema/rewrite/rewrite.h"
#include "grammar/schema/rewrite/target.h"

#include <string.h>

enum { MOST_DEPTH = 256 };

static json_t *evaluated_by(gb_evaluating *at, const json_t *schema);

static json_t *add_references(gb_evaluating *at, const json_t *schema, json_t *list) {
    static const char *const keywords[] = {"$ref", "$dynamicRef"};
    for (size_t i = 0; list && i < sizeof keywords / sizeof keywords[0]; i++) {
        if (!json_object_get(schema, keywords[i]))
            continue;
        const json_t *target = gb_schema_refer(at->reader, schema, keywords[i]);
        list = gb_evaluated_by_both(at, list, target ? evaluated_by(at, target) : NULL);
    }
    return list;
}

static json_t *add_all_of(gb_evaluating *at, const json_t *schema, json_t *list) {
    const json_t *members = gb_keyword_array(at->reader, schema, "allOf");
    for (size_t i = 0; list && i < json_array_size(members); i++)
        list = gb_evaluated_by_both(at, list, evaluated_by(at, json_array_get(members, i)));
    return list;
}

/* Takes the list; adds that nothing is evaluated, as its first. */
static json_t *or_nothing(json_t *list) {
    if (json_array_insert_new(list, 0, json_object()) == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* Whether every value satisfies the schema, as far as is seen. */
static bool is_always_satisfied(gb_evaluating *at, const json_t *schema) {
    const char *key, *name;
    json_t *value, *member;
    if (!json_is_object(schema))
        return json_is_true(schema);
    json_object_foreach(gb_mutable(schema), key, value) {
        const gb_keyword_kind kind = gb_keyword_kind_of(at->reader, key);
        if (kind == GB_KEYWORD_ANNOTATION || kind == GB_KEYWORD_PLACE)
            continue;
        if (strcmp(key, "properties") != 0 || !json_is_object(value))
            return false;
        json_object_foreach(value, name, member) if (!is_always_satisfied(at, member)) return false;
    }
    return true;
}

/* Whether one of the list evaluates nothing, under whatever conditions. */
static bool may_be_nothing(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *evaluation = json_array_get(list, i);
        if (json_object_size(evaluation) == (json_object_get(evaluation, "allOf") ? 1 : 0))
            return true;
    }
    return false;
}

/* Any of the branches that hold evaluate. That none of them does counts where another one may hold. */
static json_t *add_any_of(gb_evaluating *at, const json_t *schema, json_t *list) {
    const json_t *branches = gb_keyword_array(at->reader, schema, "anyOf");
    json_t *some = gb_nothing_evaluated();
    bool has_idle = false;
    for (size_t i = 0; some && i < json_array_size(branches); i++) {
        json_t *branch = json_array_get(branches, i), *evaluated = evaluated_by(at, branch);
        const bool is_idle = gb_is_nothing_evaluated(evaluated) || is_always_satisfied(at, branch);
        has_idle |= is_idle || may_be_nothing(evaluated);
        if (!is_idle)
            evaluated = or_nothing(gb_evaluated_where(evaluated, branch));
        some = gb_evaluated_by_both(at, some, evaluated);
    }
    if (!has_idle && json_array_size(some) > 1)
        json_array_remove(some, 0);
    return gb_evaluated_by_both(at, list, some);
}

static json_t *add_one_of(gb_evaluating *at, const json_t *schema, json_t *list) {
    const json_t *branches = gb_keyword_array(at->reader, schema, "oneOf");
    json_t *one = json_array();
    bool has_idle = json_array_size(branches) == 0;
    for (size_t i = 0; one && i < json_array_size(branches); i++) {
        json_t *branch = json_array_get(branches, i), *evaluated = evaluated_by(at, branch);
        const bool is_idle = gb_is_nothing_evaluated(evaluated);
        has_idle |= is_idle;
        if (is_idle)
            json_decref(evaluated);
        else
            one = gb_evaluated_by_either(at, one, gb_evaluated_where(evaluated, branch));
    }
    return gb_evaluated_by_both(at, list, has_idle ? or_nothing(one) : one);
}

/* What holds where the condition does, and where it does not: the branches of what it is rewritten to. */
static json_t *evaluated_by_two(gb_evaluating *at, const json_t *schema, json_t *holds, json_t *fails) {
    const json_t *branches = json_object_get(gb_rewritten_if(at->reader, schema), "anyOf");
    return gb_evaluated_by_either(at, gb_evaluated_where(holds, json_array_get(branches, 0)),
                                  gb_evaluated_where(fails, json_array_get(branches, 1)));
}

static json_t *add_if(gb_evaluating *at, const json_t *schema, json_t *list) {
    const json_t *condition = json_object_get(schema, "if");
    const json_t *then = json_object_get(schema, "then"), *otherwise = json_object_get(schema, "else");
    if (!condition)
        return list;
    json_t *holds = gb_evaluated_by_both(at, evaluated_by(at, condition), evaluated_by(at, then));
    json_t *fails = evaluated_by(at, otherwise);
    if (gb_is_nothing_evaluated(holds) && gb_is_nothing_evaluated(fails)) {
        json_decref(holds);
        json_decref(fails);
        return list;
    }
    if (then || otherwise)
        return gb_evaluated_by_both(at, list, evaluated_by_two(at, schema, holds, fails));
    json_decref(fails);
    return gb_evaluated_by_both(at, list, or_nothing(gb_evaluated_where(holds, condition)));
}

/* Takes the condition. */
static json_t *where_taken(json_t *list, json_t *condition) {
    list = gb_evaluated_where(list, condition);
    json_decref(condition);
    return list;
}

static json_t *evaluated_beside(gb_evaluating *at, const char *member, const json_t *schema) {
    json_t *present = evaluated_by(at, schema);
    if (gb_is_nothing_evaluated(present))
        return present;
    json_t *absent = where_taken(gb_nothing_evaluated(), json_pack("{s:{s:b}}", "properties", member, 0));
    json_t *object = json_pack("{s:s, s:[s]}", "type", "object", "required", member);
    return gb_evaluated_by_either(at, absent, where_taken(present, object));
}

static json_t *add_dependent(gb_evaluating *at, const json_t *schema, json_t *list) {
    const json_t *dependent = gb_keyword_object(at->reader, schema, "dependentSchemas");
    const char *member;
    json_t *value;
    json_object_foreach(gb_mutable(dependent), member, value) {
        if (!(list = gb_evaluated_by_both(at, list, evaluated_beside(at, member, value))))
            break;
    }
    return list;
}

static json_t *evaluated_by_object(gb_evaluating *at, const json_t *schema) {
    json_t *list = gb_evaluated_by_own(at, schema);
    list = add_references(at, schema, list);
    list = add_all_of(at, schema, list);
    list = add_any_of(at, schema, list);
    list = add_one_of(at, schema, list);
    list = add_if(at, schema, list);
    return add_dependent(at, schema, list);
}

static bool enter(gb_evaluating *at, const json_t *schema) {
    if (at->path.count == MOST_DEPTH)
        return gb_schema_fail(at->reader, at->schema, at->keyword, GUMBEL_ERROR_LIMIT,
                              "what is evaluated is deeper than %d schemas", MOST_DEPTH);
    return gb_schema_work(at->reader, schema) &&
           (gb_terms_add(&at->path, schema) || gb_schema_no_memory(at->reader));
}

/* NULL is no schema, which evaluates nothing. A schema within itself evaluates what it does anyway. */
static json_t *evaluated_by(gb_evaluating *at, const json_t *schema) {
    const json_t *target = schema ? gb_target(at->reader, schema) : NULL;
    if (schema && !target)
        return NULL;
    if (!json_is_object(target) || gb_terms_have(&at->path, target))
        return gb_nothing_evaluated();
    if (!enter(at, target))
        return NULL;
    json_t *list = evaluated_by_object(at, target);
    at->path.count--;
    return list;
}

json_t *gb_evaluated(gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    gb_evaluating at = {.reader = reader, .schema = schema, .keyword = keyword};
    json_t *list = evaluated_by(&at, schema);
    gb_terms_free(&at.path);
    if (list && !gb_schema_failed(reader))
        return list;
    json_decref(list);
    return NULL;
}
