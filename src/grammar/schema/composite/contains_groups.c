/* SPDX-License-Identifier: Apache-2.0
 *
 * Several schemas with contains: one item may satisfy more than one of them.
 */
#include "grammar/schema/composite/contained.h"
#include "grammar/schema/composite/contains.h"
#include "grammar/schema/composite/members.h"

enum { MOST_ASKS = 4 }; /* each partition of them is a way */

/* Which item each of the schemas is satisfied by. */
typedef struct grouping {
    gb_schema_reader *reader;
    const gb_terms *terms;
    const gb_terms *asking;
    size_t groups, group_of[MOST_ASKS];
    gb_counts counts;
    gb_value_parts ways;
} grouping;

static gb_expression express_group(const grouping *at, size_t group) {
    const json_t *all[MOST_ASKS];
    gb_terms also = {.items = all};
    for (size_t i = 0; i < at->asking->count; i++)
        if (at->group_of[i] == group)
            all[also.count++] = json_object_get(at->asking->items[i], "contains");
    return gb_express_item(at->reader, at->terms, 0, &also);
}

static bool express_grouping(grouping *at) {
    gb_schema_reader *reader = at->reader;
    gb_any_order_item items[MOST_ASKS];
    for (size_t i = 0; i < at->groups; i++) {
        items[i] = (gb_any_order_item){express_group(at, i), true};
        if (!items[i].item || items[i].item == reader->nothing)
            return items[i].item != 0;
    }
    if (at->counts.most < at->groups || at->counts.most < at->counts.least)
        return true;
    const gb_any_order order = {.items = items,
                                .count = at->groups,
                                .separator = reader->comma,
                                .rest = gb_express_item(reader, at->terms, 0, NULL),
                                .least = at->counts.least,
                                .most = at->counts.most};
    return gb_parts_add(reader, &at->ways, gb_express_any_order(reader->expressions, &order));
}

/* Puts schemas from `next` on into the groups that there are, or one more. */
static bool group_from(grouping *at, size_t next) {
    if (next >= at->asking->count || next >= MOST_ASKS)
        return express_grouping(at);
    for (size_t group = 0; group <= at->groups; group++) {
        const size_t groups = at->groups;
        at->group_of[next] = group;
        at->groups += group == groups;
        const bool is_done = group_from(at, next + 1);
        at->groups = groups;
        if (!is_done)
            return false;
    }
    return true;
}

gb_expression gb_express_groups(gb_schema_reader *reader, const gb_terms *terms, const gb_terms *asking,
                                gb_counts counts) {
    grouping at = {.reader = reader, .terms = terms, .asking = asking, .counts = counts};
    for (size_t i = 0; i < asking->count; i++) {
        const gb_counts contained = gb_read_contains(reader, asking->items[i]);
        if (i == MOST_ASKS || contained.least != 1 || contained.most != GB_NO_END ||
            gb_contains_from(asking->items[i]) > 0 || gb_prefix_count(reader, terms))
            return gb_refuse_contains(reader, asking->items[i],
                                      "beside 4 others, or others and counts or a prefix");
    }
    group_from(&at, 0);
    return gb_parts_either(reader, &at.ways);
}
