/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/alternatives/ways.h"

#include "grammar/schema/negate/negate.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/rewrite/rewrite.h"
#include "grammar/schema/rewrite/target.h"

#include <string.h>

void gb_way_free(gb_way *at) {
    gb_terms_free(&at->terms);
    gb_terms_free(&at->chosen);
    gb_terms_free(&at->left);
}

/* Whether the value has a reference in it, which may mean another schema elsewhere. */
static bool has_reference(const json_t *value) {
    const char *key;
    json_t *member;
    bool has = json_object_get(value, "$ref") || json_object_get(value, "$dynamicRef");
    json_object_foreach(gb_mutable(value), key, member) has = has || has_reference(member);
    for (size_t i = 0; !has && i < json_array_size(value); i++)
        has = has_reference(json_array_get(value, i));
    return has;
}

static bool is_same(const json_t *branch, const json_t *term) {
    return branch == term || (json_equal(gb_mutable(branch), gb_mutable(term)) && !has_reference(branch));
}

static bool has_same(const gb_terms *terms, const json_t *schema) {
    for (size_t i = 0; i < terms->count; i++)
        if (is_same(terms->items[i], schema))
            return true;
    return false;
}

bool gb_way_add(gb_schema_reader *reader, gb_way *at, const json_t *schema) {
    if (!gb_expressions_go_on(reader->expressions, at->terms.count + at->left.count + 1) ||
        !(schema = gb_target(reader, schema)))
        return false;
    if (json_is_boolean(schema))
        at->impossible |= json_is_false(schema);
    else if (!json_is_object(schema))
        gb_schema_fail(reader, schema, NULL, GUMBEL_ERROR_FORMAT,
                       "expected a schema: an object or a boolean");
    else if (has_same(&at->left, schema))
        at->impossible = true;
    else if (!gb_terms_add(&at->terms, schema))
        gb_schema_no_memory(reader);
    return !gb_schema_failed(reader);
}

static bool add_references(gb_schema_reader *reader, gb_way *at, const json_t *schema) {
    static const char *const keywords[] = {"$ref", "$dynamicRef"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (!json_object_get(schema, keywords[i]))
            continue;
        const json_t *target = gb_schema_refer(reader, schema, keywords[i]);
        if (!target || !gb_way_add(reader, at, target))
            return false;
    }
    const json_t *negated = json_object_get(schema, GB_NEGATED);
    if (negated && !(negated = gb_negated(reader, negated)))
        return false;
    return !negated || gb_way_add(reader, at, negated);
}

static bool add_all_of(gb_schema_reader *reader, gb_way *at, const json_t *schema) {
    const json_t *members = gb_keyword_array(reader, schema, "allOf");
    for (size_t i = 0; i < json_array_size(members); i++)
        if (!gb_way_add(reader, at, json_array_get(members, i)))
            return false;
    return !gb_schema_failed(reader);
}

bool gb_way_close(gb_schema_reader *reader, gb_way *at) {
    bool asserts;
    for (; at->closed < at->terms.count && !at->impossible; at->closed++) {
        const json_t *schema = at->terms.items[at->closed];
        gb_terms made = {0};
        bool is_added = gb_schema_work(reader, schema) && gb_check_keywords(reader, schema, &asserts) &&
                        add_references(reader, at, schema) && add_all_of(reader, at, schema) &&
                        gb_rewrite(reader, schema, &made);
        for (size_t k = 0; is_added && k < made.count; k++)
            is_added = gb_way_add(reader, at, made.items[k]);
        gb_terms_free(&made);
        if (!is_added)
            return false;
    }
    return true;
}

/* Whether a branch of an anyOf is among the terms already: then every other one only narrows what it allows.
 */
static bool is_satisfied(gb_schema_reader *reader, const gb_way *at, const json_t *branches) {
    for (size_t i = 0; i < json_array_size(branches) && at->chosen.count > 0; i++)
        if (has_same(&at->terms, gb_target(reader, json_array_get(branches, i))))
            return true;
    return false;
}

/* The schema's branches, if the way is to choose among them. */
static const json_t *unchosen(gb_schema_reader *reader, const gb_way *at, const json_t *schema,
                              const char *keyword) {
    const json_t *branches = gb_keyword_array(reader, schema, keyword);
    const bool is_settled = !branches || gb_terms_have(&at->chosen, branches) ||
                            (strcmp(keyword, "anyOf") == 0 && is_satisfied(reader, at, branches));
    return is_settled ? NULL : branches;
}

const json_t *gb_way_choice(gb_schema_reader *reader, const gb_way *at, const json_t **schema,
                            const char **keyword) {
    static const char *const keywords[] = {GB_EVALUATED, "anyOf", "oneOf"};
    const json_t *branches = NULL;
    for (size_t i = 0; i < at->terms.count && !branches; i++)
        branches = unchosen(reader, at, *schema = at->terms.items[i], *keyword = keywords[0]);
    for (size_t i = 0; i < 2 * at->terms.count && !branches; i++)
        branches = unchosen(reader, at, *schema = at->terms.items[i / 2], *keyword = keywords[1 + i % 2]);
    return branches;
}

bool gb_way_take(gb_schema_reader *reader, const gb_way *from, const json_t *branches, size_t index,
                 gb_way *taken) {
    *taken = (gb_way){.closed = from->closed, .impossible = from->impossible};
    if (!gb_terms_add_all(&taken->terms, &from->terms) || !gb_terms_add_all(&taken->chosen, &from->chosen) ||
        !gb_terms_add_all(&taken->left, &from->left) || !gb_terms_add(&taken->chosen, branches)) {
        gb_schema_no_memory(reader);
        return false;
    }
    return gb_way_add(reader, taken, json_array_get(branches, index));
}
