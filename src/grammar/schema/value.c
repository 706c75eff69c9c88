/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/value.h"

#include "base/memory.h"
#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/alternatives/listed.h"
#include "grammar/schema/composite/composite.h"
#include "grammar/schema/number/number.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/rewrite/rewrite.h"
#include "grammar/schema/rewrite/target.h"
#include "grammar/schema/string/json_string.h"

#include <stdio.h>

static bool is_excluded(gb_schema_reader *reader, const gb_terms *terms, const json_t *value) {
    for (size_t i = 0; i < terms->count; i++)
        if (gb_is_listed(reader, gb_excluded(terms->items[i]), value))
            return true;
    return false;
}

static gb_expression express_word(gb_schema_reader *reader, const gb_terms *terms, const json_t *value,
                                  const char *word) {
    return is_excluded(reader, terms, value) ? reader->nothing : gb_literal(reader, word);
}

static gb_expression express_candidates(gb_schema_reader *reader, const gb_terms *terms, size_t count) {
    gb_value_parts values = {0};
    for (size_t i = 0; i < count; i++)
        if (!gb_parts_add(reader, &values, gb_express_candidate(reader, terms, gb_candidate(terms, i))))
            break;
    return gb_parts_either(reader, &values);
}

/* Values under assertions alone. */
static gb_expression express_alternative(gb_schema_reader *reader, const gb_terms *terms) {
    const size_t candidates = gb_candidate_count(reader, terms);
    const unsigned types = gb_types_of(reader, terms);
    gb_expression items[7];
    size_t count = 0;
    if (candidates != SIZE_MAX)
        return express_candidates(reader, terms, candidates);
    if (types & GB_TYPE_NULL)
        items[count++] = express_word(reader, terms, json_null(), "null");
    if (types & GB_TYPE_BOOLEAN) {
        items[count++] = express_word(reader, terms, json_true(), "true");
        items[count++] = express_word(reader, terms, json_false(), "false");
    }
    if (types & GB_TYPE_NUMBER)
        items[count++] = gb_express_number(reader, terms, types & GB_TYPE_NUMBER);
    if (types & GB_TYPE_STRING)
        items[count++] = gb_express_string(reader, terms, false);
    if (types & GB_TYPE_ARRAY)
        items[count++] = gb_express_array(reader, terms);
    if (types & GB_TYPE_OBJECT)
        items[count++] = gb_express_object(reader, terms);
    return gb_schema_failed(reader) ? 0 : gb_either(reader, items, count);
}

/* Any of the alternatives, by a function for one. */
static gb_expression express_all(gb_schema_reader *reader, const gb_alternatives *alternatives,
                                 gb_expression express(gb_schema_reader *, const gb_terms *)) {
    gb_value_parts values = {0};
    for (size_t i = 0; i < alternatives->count; i++)
        if (!gb_parts_add(reader, &values, express(reader, &alternatives->items[i])))
            break;
    return gb_parts_either(reader, &values);
}

static gb_expression express_key_alternative(gb_schema_reader *reader, const gb_terms *terms) {
    const size_t candidates = gb_candidate_count(reader, terms);
    if (candidates != SIZE_MAX)
        return express_candidates(reader, terms, candidates);
    return gb_types_of(reader, terms) & GB_TYPE_STRING ? gb_express_string(reader, terms, true)
                                                       : reader->nothing;
}

gb_expression gb_express_keys(gb_schema_reader *reader, const gb_terms *terms) {
    gb_alternatives alternatives = {0};
    const gb_expression keys = gb_find_alternatives(reader, terms, &alternatives)
                                   ? express_all(reader, &alternatives, express_key_alternative)
                                   : 0;
    gb_alternatives_free(&alternatives);
    return keys;
}

/* Whether an alternative may be an array or an object, which are rules: they may stand in themselves. */
static bool has_composites(gb_schema_reader *reader, const gb_alternatives *alternatives) {
    for (size_t i = 0; i < alternatives->count; i++)
        if (gb_candidate_count(reader, &alternatives->items[i]) == SIZE_MAX &&
            gb_types_of(reader, &alternatives->items[i]) & (GB_TYPE_ARRAY | GB_TYPE_OBJECT))
            return true;
    return false;
}

static gb_expression new_rule(gb_schema_reader *reader, const gb_terms *terms) {
    char place[120], name[200];
    if (!gb_schema_place(reader, terms->count ? terms->items[0] : NULL, NULL, place, sizeof place))
        return gb_schema_no_memory(reader);
    snprintf(name, sizeof name, "%s.%zu %s", reader->rule_prefix, reader->values.count, place);
    return gb_express_rule(reader->expressions, name);
}

/* Takes the alternatives. */
static gb_expression wait_for_rule(gb_schema_reader *reader, const gb_terms *terms,
                                   gb_alternatives *alternatives) {
    const gb_expression rule = new_rule(reader, terms);
    if (!gb_grow((void **)&reader->waiting, &reader->waiting_capacity, reader->waiting_count + 1,
                 sizeof *reader->waiting)) {
        gb_alternatives_free(alternatives);
        return gb_schema_no_memory(reader);
    }
    reader->waiting[reader->waiting_count++] = (gb_waiting_rule){rule, *alternatives};
    return rule;
}

static gb_expression express_new(gb_schema_reader *reader, const gb_terms *terms) {
    gb_alternatives alternatives = {0};
    gb_expression value = 0;
    if (gb_find_alternatives(reader, terms, &alternatives)) {
        if (has_composites(reader, &alternatives))
            return wait_for_rule(reader, terms, &alternatives);
        value = express_all(reader, &alternatives, express_alternative);
    }
    gb_alternatives_free(&alternatives);
    return value;
}

/* Adds the terms, what they refer to in their place: the same schemas under one key are expressed once. */
static bool add_targets(gb_schema_reader *reader, const gb_terms *terms, gb_terms *targets) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *schema = gb_target(reader, terms->items[i]);
        if (!schema)
            return false;
        if (!json_is_true(schema) && !gb_terms_add(targets, schema))
            return gb_schema_no_memory(reader);
    }
    return true;
}

static gb_expression express_known(gb_schema_reader *reader, const gb_terms *terms) {
    const uint32_t *known = gb_terms_map_at(&reader->values, terms);
    if (known && *known)
        return *known;
    const gb_expression value = known ? express_new(reader, terms) : gb_schema_no_memory(reader);
    uint32_t *added = gb_terms_map_at(&reader->values, terms);
    if (!added)
        return gb_schema_no_memory(reader);
    return *added = value;
}

gb_expression gb_express_value(gb_schema_reader *reader, const gb_terms *terms) {
    gb_terms targets = {0};
    const gb_expression value = add_targets(reader, terms, &targets) ? express_known(reader, &targets) : 0;
    gb_terms_free(&targets);
    return value;
}

void gb_express_waiting(gb_schema_reader *reader) {
    while (reader->waiting_count > 0 && !gb_schema_failed(reader)) {
        gb_waiting_rule next = reader->waiting[--reader->waiting_count];
        const gb_expression item = express_all(reader, &next.alternatives, express_alternative);
        gb_alternatives_free(&next.alternatives);
        if (item)
            gb_define_rule(reader->expressions, next.rule, item);
    }
}
