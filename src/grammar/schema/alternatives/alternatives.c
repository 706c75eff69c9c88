/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/alternatives/alternatives.h"

#include "base/memory.h"
#include "grammar/schema/alternatives/impossible.h"
#include "grammar/schema/alternatives/listed.h"
#include "grammar/schema/alternatives/ways.h"
#include "grammar/schema/negate/negate.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/rewrite/target.h"

#include <string.h>

/* What is looked for: all alternatives, or whether there is one. */
typedef struct search {
    gb_schema_reader *reader;
    unsigned look;
    bool is_any;   /* one is enough */
    bool is_exact; /* branches of oneOf are held apart */
    gb_alternatives *alternatives;
} search;

static bool add_alternative(const search *wanted, const gb_way *at) {
    gb_schema_reader *reader = wanted->reader;
    gb_alternatives *alternatives = wanted->alternatives;
    gb_terms leaf = {0};
    bool asserts;
    for (size_t i = 0; i < at->terms.count; i++)
        if (!gb_check_keywords(reader, at->terms.items[i], &asserts) ||
            (asserts && !gb_terms_add(&leaf, at->terms.items[i]))) {
            gb_terms_free(&leaf);
            return gb_schema_no_memory(reader);
        }
    if (gb_is_impossible(reader, &leaf, wanted->look)) {
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

static bool follow(const search *wanted, gb_way *at);

/* ---- oneOf --------------------------------------------------------------------------------------------- */

/* Whether no value can satisfy both branches of a oneOf, as far as is seen. */
static bool are_disjoint(gb_schema_reader *reader, const gb_way *from, const json_t *branches, size_t a,
                         size_t b) {
    gb_alternatives common = {0};
    const search any = {.reader = reader, .look = GB_LOOK_DEPTH, .is_any = true, .alternatives = &common};
    gb_way one = {0}, both = {0};
    bool is_followed = gb_way_take(reader, from, branches, a, &one);
    gb_terms_free(&one.left); /* what other ways have counts here */
    is_followed = is_followed && gb_way_take(reader, &one, branches, b, &both) && follow(&any, &both);
    const bool is_disjoint = is_followed && common.count == 0;
    gb_way_free(&one);
    gb_way_free(&both);
    gb_alternatives_free(&common);
    return is_disjoint;
}

/* One branch of a oneOf has no value of the others: what they do not allow is asked where they may overlap.
 */
static bool leave_out_others(gb_schema_reader *reader, const gb_way *from, const json_t *branches,
                             size_t index, gb_way *taken) {
    for (size_t i = 0; i < json_array_size(branches); i++) {
        if (i == index || are_disjoint(reader, from, branches, index, i))
            continue;
        const json_t *negated =
            gb_schema_failed(reader) ? NULL : gb_negated(reader, json_array_get(branches, i));
        if (!negated || !gb_way_add(reader, taken, negated))
            return false;
    }
    return !gb_schema_failed(reader);
}

static bool is_held_apart(const search *wanted, const char *keyword, const json_t *branches) {
    return wanted->is_exact && strcmp(keyword, "oneOf") == 0 && !wanted->reader->options.one_of_as_any_of &&
           !gb_have_different_consts(wanted->reader, branches);
}

/* ---- All of them --------------------------------------------------------------------------------------- */

/* left: what the way has left to others, and the branches before this one. */
static bool follow_branch(const search *wanted, const gb_way *at, const json_t *branches, size_t index,
                          bool is_apart, const gb_terms *left) {
    gb_way taken;
    bool is_followed = gb_way_take(wanted->reader, at, branches, index, &taken) &&
                       (!is_apart || leave_out_others(wanted->reader, at, branches, index, &taken));
    gb_terms_free(&taken.left);
    if (is_followed && !gb_terms_add_all(&taken.left, left))
        is_followed = gb_schema_no_memory(wanted->reader);
    is_followed = is_followed && follow(wanted, &taken);
    gb_way_free(&taken);
    return is_followed;
}

/* Whether a way on which a branch was taken can be seen to lead nowhere. */
static bool is_dead(const search *wanted, const gb_way *at) {
    return at->impossible || gb_types_of(wanted->reader, &at->terms) == 0 ||
           (at->chosen.count > 0 && gb_is_impossible(wanted->reader, &at->terms, wanted->look > 0));
}

/* Adds the branch to what is left to others. */
static bool leave(gb_schema_reader *reader, gb_terms *left, const json_t *branch) {
    const json_t *schema = gb_target(reader, branch);
    if (schema && json_is_object(schema) && !gb_terms_add(left, schema))
        gb_schema_no_memory(reader);
    return !gb_schema_failed(reader);
}

static bool follow_branches(const search *wanted, const gb_way *at, const json_t *branches, bool is_apart) {
    gb_terms left = {0};
    bool is_followed = gb_terms_add_all(&left, &at->left) || gb_schema_no_memory(wanted->reader);
    for (size_t i = 0; is_followed && i < json_array_size(branches); i++) {
        is_followed = follow_branch(wanted, at, branches, i, is_apart, &left) &&
                      leave(wanted->reader, &left, json_array_get(branches, i));
        if (wanted->is_any && wanted->alternatives->count > 0)
            break;
    }
    gb_terms_free(&left);
    return is_followed;
}

/* Follows the way to its ends. */
static bool follow(const search *wanted, gb_way *at) {
    gb_schema_reader *reader = wanted->reader;
    const json_t *schema;
    const char *keyword;
    if (!gb_way_close(reader, at))
        return false;
    if (is_dead(wanted, at))
        return !gb_schema_failed(reader);
    const json_t *branches = gb_way_choice(reader, at, &schema, &keyword);
    if (gb_schema_failed(reader))
        return false;
    if (!branches)
        return add_alternative(wanted, at);
    if (json_array_size(branches) == 0)
        return gb_schema_fail(reader, schema, keyword, GUMBEL_ERROR_FORMAT, "expected at least one schema");
    return follow_branches(wanted, at, branches, is_held_apart(wanted, keyword, branches));
}

static bool start(const search *wanted, const gb_terms *terms) {
    gb_way way = {0};
    bool is_done = true;
    for (size_t i = 0; is_done && i < terms->count; i++)
        is_done = gb_way_add(wanted->reader, &way, terms->items[i]);
    is_done = is_done && follow(wanted, &way);
    gb_way_free(&way);
    return is_done;
}

bool gb_find_alternatives(gb_schema_reader *reader, const gb_terms *terms, gb_alternatives *alternatives) {
    const search all = {
        .reader = reader, .look = GB_LOOK_DEPTH, .is_exact = true, .alternatives = alternatives};
    return start(&all, terms);
}

static bool look_for_one(gb_schema_reader *reader, const gb_terms *terms, unsigned look) {
    gb_alternatives alternatives = {0};
    const search any = {.reader = reader, .look = look, .is_any = true, .alternatives = &alternatives};
    const bool has_one = start(&any, terms) && alternatives.count > 0;
    gb_alternatives_free(&alternatives);
    return has_one;
}

bool gb_has_alternative(gb_schema_reader *reader, const gb_terms *terms, unsigned look) {
    gb_terms_map *possible = &reader->possible[look];
    uint32_t *known = gb_terms_map_at(possible, terms);
    uint32_t found = known ? *known : 0;
    if (known && !found) {
        found = look_for_one(reader, terms, look) ? 2 : 1;
        known = gb_terms_map_at(possible, terms);
    }
    if (!known)
        return gb_schema_no_memory(reader);
    *known = found;
    return found == 2 && !gb_schema_failed(reader);
}

void gb_alternatives_free(gb_alternatives *alternatives) {
    for (size_t i = 0; i < alternatives->count; i++)
        gb_terms_free(&alternatives->items[i]);
    gb_free(alternatives->items);
    *alternatives = (gb_alternatives){0};
}
