/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/alternatives/alternatives.h"

#include "base/memory.h"
#include "grammar/schema/alternatives/impossible.h"
#include "grammar/schema/alternatives/listed.h"
#include "grammar/schema/negate/negate.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/rewrite/honoured.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/rewrite/rewrite.h"

#include <string.h>

/* One way that is being followed. */
typedef struct way {
    gb_terms terms;
    gb_terms chosen; /* the arrays of anyOf and oneOf of which terms have a branch already */
    bool impossible;
} way;

static void free_way(way *at) {
    gb_terms_free(&at->terms);
    gb_terms_free(&at->chosen);
}

static bool add_term(gb_schema_reader *reader, way *at, const json_t *schema) {
    if (json_is_boolean(schema))
        at->impossible |= json_is_false(schema);
    else if (!json_is_object(schema))
        gb_schema_fail(reader, schema, NULL, GUMBEL_ERROR_FORMAT,
                       "expected a schema: an object or a boolean");
    else if ((schema = gb_honoured(reader, schema)) && !gb_terms_add(&at->terms, schema))
        gb_schema_no_memory(reader);
    return !gb_schema_failed(reader);
}

static bool add_references(gb_schema_reader *reader, way *at, const json_t *schema) {
    static const char *const keywords[] = {"$ref", "$dynamicRef"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (!json_object_get(schema, keywords[i]))
            continue;
        const json_t *target = gb_schema_refer(reader, schema, keywords[i]);
        if (!target || !add_term(reader, at, target))
            return false;
    }
    const json_t *negated = json_object_get(schema, GB_NEGATED);
    if (negated && !(negated = gb_negated(reader, negated)))
        return false;
    return !negated || add_term(reader, at, negated);
}

static bool add_all_of(gb_schema_reader *reader, way *at, const json_t *schema) {
    const json_t *members = gb_keyword_array(reader, schema, "allOf");
    for (size_t i = 0; i < json_array_size(members); i++)
        if (!add_term(reader, at, json_array_get(members, i)))
            return false;
    return !gb_schema_failed(reader);
}

/* Adds all schemas that the terms bring without a choice. */
static bool close_way(gb_schema_reader *reader, way *at) {
    bool asserts;
    for (size_t i = 0; i < at->terms.count; i++) {
        const json_t *schema = at->terms.items[i];
        gb_terms made = {0};
        bool is_added = gb_schema_work(reader, schema) && gb_check_keywords(reader, schema, &asserts) &&
                        add_references(reader, at, schema) && add_all_of(reader, at, schema) &&
                        gb_rewrite(reader, schema, &made);
        for (size_t k = 0; is_added && k < made.count; k++)
            is_added = add_term(reader, at, made.items[k]);
        gb_terms_free(&made);
        if (!is_added)
            return false;
    }
    return true;
}

/* The first branches that terms have not chosen from; *schema has them. */
static const json_t *next_choice(gb_schema_reader *reader, const way *at, const json_t **schema,
                                 const char **keyword) {
    static const char *const keywords[] = {"anyOf", "oneOf"};
    for (size_t i = 0; i < at->terms.count; i++)
        for (size_t k = 0; k < sizeof keywords / sizeof keywords[0]; k++) {
            const json_t *branches = gb_keyword_array(reader, at->terms.items[i], keywords[k]);
            if (!branches || gb_terms_have(&at->chosen, branches))
                continue;
            *schema = at->terms.items[i];
            *keyword = keywords[k];
            return branches;
        }
    return NULL;
}

/* The way with one more branch of a choice; the caller frees it. */
static bool take_branch(gb_schema_reader *reader, const way *from, const json_t *branches, size_t index,
                        way *taken) {
    *taken = (way){.impossible = from->impossible};
    if (!gb_terms_add_all(&taken->terms, &from->terms) || !gb_terms_add_all(&taken->chosen, &from->chosen) ||
        !gb_terms_add(&taken->chosen, branches)) {
        gb_schema_no_memory(reader);
        return false;
    }
    return add_term(reader, taken, json_array_get(branches, index));
}

static bool add_alternative(gb_schema_reader *reader, const way *at, unsigned look,
                            gb_alternatives *alternatives) {
    gb_terms leaf = {0};
    bool asserts;
    for (size_t i = 0; i < at->terms.count; i++)
        if (!gb_check_keywords(reader, at->terms.items[i], &asserts) ||
            (asserts && !gb_terms_add(&leaf, at->terms.items[i]))) {
            gb_terms_free(&leaf);
            return gb_schema_no_memory(reader);
        }
    if (gb_is_impossible(reader, &leaf, look)) {
        gb_terms_free(&leaf);
        return !gb_schema_failed(reader);
    }
    if (alternatives->count == GB_MAX_SCHEMA_ALTERNATIVES)
        gb_schema_fail(reader, at->terms.count ? at->terms.items[0] : NULL, NULL, GUMBEL_ERROR_LIMIT,
                       "more than %d alternatives for one value", GB_MAX_SCHEMA_ALTERNATIVES);
    else if (!gb_grow((void **)&alternatives->items, &alternatives->capacity, alternatives->count + 1,
                      sizeof leaf))
        gb_schema_no_memory(reader);
    if (gb_schema_failed(reader)) {
        gb_terms_free(&leaf);
        return false;
    }
    alternatives->items[alternatives->count++] = leaf;
    return true;
}

static bool follow(gb_schema_reader *reader, way *at, unsigned look, gb_alternatives *alternatives);

/* Whether no value can satisfy both branches of a oneOf, as far as is seen. */
static bool are_disjoint(gb_schema_reader *reader, const way *from, const json_t *branches, size_t a,
                         size_t b) {
    gb_alternatives common = {0};
    way one = {0}, both = {0};
    const bool is_followed = take_branch(reader, from, branches, a, &one) &&
                             take_branch(reader, &one, branches, b, &both) &&
                             follow(reader, &both, GB_LOOK_DEPTH, &common);
    const bool is_disjoint = is_followed && common.count == 0;
    free_way(&one);
    free_way(&both);
    gb_alternatives_free(&common);
    return is_disjoint;
}

/* One branch of a oneOf has no value of the others: what they do not allow is asked where they may overlap.
 */
static bool leave_out_others(gb_schema_reader *reader, const way *from, const json_t *branches, size_t index,
                             way *taken) {
    for (size_t i = 0; i < json_array_size(branches); i++) {
        if (i == index || are_disjoint(reader, from, branches, index, i))
            continue;
        const json_t *negated =
            gb_schema_failed(reader) ? NULL : gb_negated(reader, json_array_get(branches, i));
        if (!negated || !add_term(reader, taken, negated))
            return false;
    }
    return !gb_schema_failed(reader);
}

/* Follows the way to its ends. */
static bool follow(gb_schema_reader *reader, way *at, unsigned look, gb_alternatives *alternatives) {
    const json_t *schema;
    const char *keyword;
    if (!close_way(reader, at))
        return false;
    if (at->impossible || gb_types_of(reader, &at->terms) == 0)
        return !gb_schema_failed(reader);
    const json_t *branches = next_choice(reader, at, &schema, &keyword);
    if (gb_schema_failed(reader))
        return false;
    if (!branches)
        return add_alternative(reader, at, look, alternatives);
    if (json_array_size(branches) == 0)
        return gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected at least one schema");
    const bool is_one_of = strcmp(keyword, "oneOf") == 0 && look == GB_LOOK_DEPTH &&
                           !reader->options.one_of_as_any_of && !gb_have_different_consts(reader, branches);
    for (size_t i = 0; i < json_array_size(branches); i++) {
        way taken;
        const bool is_followed = take_branch(reader, at, branches, i, &taken) &&
                                 (!is_one_of || leave_out_others(reader, at, branches, i, &taken)) &&
                                 follow(reader, &taken, look, alternatives);
        free_way(&taken);
        if (!is_followed)
            return false;
    }
    return true;
}

bool gb_find_alternatives(gb_schema_reader *reader, const gb_terms *terms, unsigned look,
                          gb_alternatives *alternatives) {
    way start = {0};
    bool is_done = true;
    for (size_t i = 0; is_done && i < terms->count; i++)
        is_done = add_term(reader, &start, terms->items[i]);
    is_done = is_done && follow(reader, &start, look, alternatives);
    free_way(&start);
    return is_done;
}

void gb_alternatives_free(gb_alternatives *alternatives) {
    for (size_t i = 0; i < alternatives->count; i++)
        gb_terms_free(&alternatives->items[i]);
    gb_free(alternatives->items);
    *alternatives = (gb_alternatives){0};
}
