/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays whose items all differ.
 */
#include "base/memory.h"
#include "grammar/common/build_json.h"
#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/alternatives/listed.h"
#include "grammar/schema/composite/items.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/composite/one_spelling.h"
#include "grammar/schema/reader/types.h"

enum {
    MOST_VALUES = 1000, /* that are items of their own */
    MOST_APART = 16     /* items that are compared by their schemas */
};

static const json_t *unique_schema(const gb_terms *terms) {
    for (size_t i = 0; i < terms->count; i++)
        if (json_is_true(json_object_get(terms->items[i], "uniqueItems")))
            return terms->items[i];
    return NULL;
}

bool gb_asks_unique(gb_schema_reader *reader, const gb_terms *terms) {
    for (size_t i = 0; i < terms->count; i++) {
        const json_t *value = json_object_get(terms->items[i], "uniqueItems");
        if (value && !json_is_boolean(value))
            gb_schema_fail(reader, terms->items[i], "uniqueItems", GUMBEL_ERROR_FORMAT,
                           "expected true or false");
    }
    return unique_schema(terms) != NULL;
}

/* ---- Items of a few values ----------------------------------------------------------------------------- */

static bool has_value(const json_t *values, const json_t *value) {
    for (size_t i = 0; i < json_array_size(values); i++)
        if (gb_json_equal(json_array_get(values, i), value))
            return true;
    return false;
}

/* Adds a value that is not there yet. False where there are too many, and without memory. */
static bool add_value(gb_schema_reader *reader, json_t *values, const json_t *value) {
    if (has_value(values, value))
        return true;
    if (json_array_size(values) == MOST_VALUES)
        return false;
    return json_array_append(values, gb_mutable(value)) == 0 || gb_schema_no_memory(reader);
}

/* Whether null and booleans are all that the types allow, which are added. */
static bool add_words(gb_schema_reader *reader, json_t *values, unsigned types) {
    if (types & ~(unsigned)(GB_TYPE_NULL | GB_TYPE_BOOLEAN))
        return false;
    if (types & GB_TYPE_NULL && !add_value(reader, values, json_null()))
        return false;
    return !(types & GB_TYPE_BOOLEAN) ||
           (add_value(reader, values, json_true()) && add_value(reader, values, json_false()));
}

static bool add_listed(gb_schema_reader *reader, json_t *values, const gb_terms *terms) {
    const size_t count = gb_candidate_count(reader, terms);
    if (count == SIZE_MAX)
        return add_words(reader, values, gb_types_of(reader, terms));
    for (size_t i = 0; i < count; i++)
        if (!gb_value_fails(reader, terms, gb_candidate(terms, i)) &&
            !add_value(reader, values, gb_candidate(terms, i)))
            return false;
    return true;
}

/* Whether the item can have but a few values, which are added. */
static bool list_values(gb_schema_reader *reader, const gb_terms *item, json_t *values) {
    gb_alternatives alternatives = {0};
    bool is_listed = gb_find_alternatives(reader, item, &alternatives);
    for (size_t i = 0; is_listed && i < alternatives.count; i++)
        is_listed = add_listed(reader, values, &alternatives.items[i]);
    gb_alternatives_free(&alternatives);
    return is_listed && !gb_schema_failed(reader);
}

/* Each of the values at most once, in any order. */
static gb_expression express_each_once(gb_schema_reader *reader, const gb_terms *item, const json_t *values,
                                       gb_counts counts) {
    gb_any_order_item *items = gb_allocate(json_array_size(values), sizeof *items);
    gb_any_order order = {
        .items = items, .separator = reader->comma, .least = counts.least, .most = counts.most};
    if (!items)
        return gb_schema_no_memory(reader);
    for (size_t i = 0; i < json_array_size(values) && !gb_schema_failed(reader); i++) {
        const gb_expression value = gb_express_literal(reader, item, json_array_get(values, i));
        if (value && value != reader->nothing)
            items[order.count++].item = GB_JOIN(reader, value, reader->space);
    }
    const bool is_possible = counts.least <= counts.most && counts.least <= order.count;
    const gb_expression content = !is_possible       ? reader->nothing
                                  : order.count == 0 ? reader->empty
                                                     : gb_express_any_order(reader->expressions, &order);
    gb_free(items);
    return content ? gb_in_brackets(reader, content, false) : 0;
}

static gb_expression express_values(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts) {
    gb_terms item = {0};
    json_t *values = json_array();
    gb_expression array = 0;
    if (!values)
        gb_schema_no_memory(reader);
    else if (gb_item_terms(reader, terms, 0, &item) && list_values(reader, &item, values))
        array = express_each_once(reader, &item, values, counts);
    json_decref(values);
    gb_terms_free(&item);
    return array;
}

/* ---- Items whose texts differ -------------------------------------------------------------------------- */

static gb_expression express_texts(gb_schema_reader *reader, gb_expression item, gb_counts counts) {
    if (counts.least > counts.most || (item == reader->nothing && counts.least > 0))
        return reader->nothing;
    if (item == reader->nothing)
        return gb_in_brackets(reader, reader->nothing, true);
    const gb_expression separator = GB_JOIN(reader, reader->space, reader->comma);
    const gb_expression items = gb_express_distinct(reader->expressions, item, separator,
                                                    counts.least ? counts.least : 1, counts.most);
    return gb_in_brackets(reader, GB_JOIN(reader, items, reader->space), counts.least == 0);
}

/* 0 also where equal items may be written differently. */
static gb_expression express_spelled(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts) {
    gb_terms item = {0};
    gb_expression spelled = 0;
    if (gb_item_terms(reader, terms, 0, &item))
        spelled = gb_express_one_spelling(reader, &item);
    gb_terms_free(&item);
    return spelled ? express_texts(reader, spelled, counts) : 0;
}

/* ---- Items of different kinds -------------------------------------------------------------------------- */

/* Whether no value can be at both places. */
static bool differ(gb_schema_reader *reader, const gb_terms *terms, size_t first, size_t second) {
    gb_alternatives common = {0};
    gb_terms both = {0};
    const bool is_found = gb_item_terms(reader, terms, first, &both) &&
                          gb_item_terms(reader, terms, second, &both) &&
                          gb_find_alternatives(reader, &both, &common);
    const bool differ = is_found && common.count == 0;
    gb_terms_free(&both);
    gb_alternatives_free(&common);
    return differ;
}

static bool all_differ(gb_schema_reader *reader, const gb_terms *terms, size_t count) {
    for (size_t first = 0; first < count; first++)
        for (size_t second = first + 1; second < count; second++)
            if (count > MOST_APART || !differ(reader, terms, first, second))
                return false;
    return true;
}

/* How many items there are, where no more than a prefix can be. */
static size_t most_items(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts) {
    const size_t prefix = gb_prefix_count(reader, terms);
    if (counts.most > prefix && gb_express_item(reader, terms, prefix, NULL) == reader->nothing)
        return prefix;
    return counts.most;
}

gb_expression gb_express_unique(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts) {
    const size_t most = most_items(reader, terms, counts);
    if (all_differ(reader, terms, most))
        return gb_express_any_items(reader, terms, counts);
    gb_expression array = 0;
    if (gb_prefix_count(reader, terms) == 0)
        array = express_values(reader, terms, counts);
    if (!array && !gb_schema_failed(reader) && gb_prefix_count(reader, terms) == 0)
        array = express_spelled(reader, terms, counts);
    return array ? array
                 : gb_schema_fail(reader, unique_schema(terms), "uniqueItems", GUMBEL_ERROR_UNSUPPORTED,
                                  "it cannot be honoured but of items that enum or const lists, of strings, "
                                  "numbers, booleans and null, and of items that differ in their schemas");
}
