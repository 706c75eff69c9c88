/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays some of whose items satisfy one more schema. Which of them do is found while they are read.
 */
#include "grammar/schema/composite/contains.h"

#include "grammar/schema/composite/contained.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/negate/negate.h"
#include "grammar/schema/rewrite/made.h"

enum {
    MOST_COUNTED = 4 /* items that are counted in any order: each subset of them is a state */
};

gb_counts gb_read_contains(gb_schema_reader *reader, const json_t *schema) {
    const gb_terms one = {.items = &schema, .count = 1};
    if (!json_object_get(schema, "contains"))
        return (gb_counts){0, GB_NO_END};
    gb_counts counts = gb_read_counts(reader, &one, "minContains", "maxContains");
    if (!json_object_get(schema, "minContains"))
        counts.least = 1;
    return counts;
}

size_t gb_contains_from(const json_t *schema) {
    return (size_t)json_integer_value(json_object_get(schema, GB_CONTAINS_FROM));
}

bool gb_contains_asks(gb_counts counts) {
    return counts.least > 0 || counts.most != GB_NO_END;
}

bool gb_asks_contains(gb_schema_reader *reader, const gb_terms *terms) {
    for (size_t i = 0; i < terms->count; i++)
        if (gb_contains_asks(gb_read_contains(reader, terms->items[i])))
            return true;
    return false;
}

gb_expression gb_refuse_contains(gb_schema_reader *reader, const json_t *schema, const char *reason) {
    return gb_schema_fail(reader, schema, "contains", GUMBEL_ERROR_UNSUPPORTED, "it cannot be honoured %s",
                          reason);
}

/* ---- One schema, counted ------------------------------------------------------------------------------- */

gb_expression gb_express_contained(gb_schema_reader *reader, const gb_terms *terms, size_t index,
                                   const json_t *more) {
    return gb_express_item(reader, terms, index, &(gb_terms){.items = &more, .count = 1});
}

/* Items that do not count: any, or where there may not be too many, those that contains does not allow. */
static gb_expression other_item(gb_schema_reader *reader, const gb_terms *terms, const json_t *schema,
                                size_t index, gb_counts contained) {
    if (contained.most == GB_NO_END)
        return gb_express_item(reader, terms, index, NULL);
    const json_t *others = gb_negated(reader, json_object_get(schema, "contains"));
    return others ? gb_express_contained(reader, terms, index, others) : 0;
}

/* The items that count, those that must be there first, between any number of others. */
static gb_expression express_mixed(gb_schema_reader *reader, gb_expression counted, gb_expression other,
                                   gb_counts contained, gb_counts counts) {
    gb_any_order_item items[MOST_COUNTED];
    const bool has_rest = other != reader->nothing;
    gb_any_order order = {.items = items,
                          .separator = reader->comma,
                          .rest = has_rest ? other : 0,
                          .least = counts.least,
                          .most = counts.most};
    const uint32_t most = contained.most == GB_NO_END ? contained.least : contained.most;
    for (uint32_t i = 0; i < most && counted != reader->nothing; i++)
        items[order.count++] = (gb_any_order_item){counted, i < contained.least};
    if (!counted || !other)
        return 0;
    if (contained.least > contained.most || contained.least > order.count || contained.least > counts.most ||
        counts.least > counts.most || (!has_rest && counts.least > order.count))
        return reader->nothing;
    return order.count || has_rest ? gb_express_any_order(reader->expressions, &order) : reader->empty;
}

/* Where nothing else is counted: each item that counts behind any number of others. */
static gb_expression express_in_turn(gb_schema_reader *reader, gb_expression counted, gb_expression other,
                                     gb_counts contained) {
    gb_expressions *expressions = reader->expressions;
    const bool has_others = counted && other && other != reader->nothing;
    const gb_expression before =
        has_others ? gb_express_repeat(expressions, GB_JOIN(reader, other, reader->comma), 0, GB_NO_END)
                   : reader->empty;
    const gb_expression behind =
        has_others ? gb_express_repeat(expressions, GB_JOIN(reader, reader->comma, other), 0, GB_NO_END)
                   : reader->empty;
    const uint32_t least = contained.least - 1;
    const uint32_t most = contained.most == GB_NO_END ? least : contained.most - 1;
    if (!counted || !other)
        return 0;
    if (counted == reader->nothing || contained.most < contained.least)
        return reader->nothing;
    const gb_expression next = GB_JOIN(reader, before, counted);
    return GB_JOIN(reader, next,
                   gb_express_repeat(expressions, GB_JOIN(reader, reader->comma, next), least, most), behind);
}

gb_expression gb_express_counted(gb_schema_reader *reader, const gb_terms *terms, const json_t *schema,
                                 size_t index, gb_counts counts) {
    const gb_counts contained = gb_read_contains(reader, schema);
    const gb_expression counted =
        gb_express_contained(reader, terms, index, json_object_get(schema, "contains"));
    const gb_expression other = other_item(reader, terms, schema, index, contained);
    if (contained.least > 0 && counts.least <= contained.least && counts.most == GB_NO_END)
        return express_in_turn(reader, counted, other, contained);
    if ((contained.most == GB_NO_END ? contained.least : contained.most) > MOST_COUNTED)
        return gb_refuse_contains(reader, schema, "of more than 4 items beside minItems or maxItems");
    return express_mixed(reader, counted, other, contained, counts);
}

gb_expression gb_express_containing(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts) {
    gb_terms asking = {0};
    gb_expression content = 0;
    for (size_t i = 0; i < terms->count; i++)
        if (gb_contains_asks(gb_read_contains(reader, terms->items[i])) &&
            !gb_terms_add(&asking, terms->items[i]))
            gb_schema_no_memory(reader);
    if (gb_schema_failed(reader))
        content = 0;
    else if (asking.count > 1)
        content = gb_express_groups(reader, terms, &asking, counts);
    else if (gb_prefix_count(reader, terms) > 0 || gb_contains_from(asking.items[0]) > 0)
        content = gb_express_beside_prefix(reader, terms, asking.items[0], counts);
    else
        content = gb_express_counted(reader, terms, asking.items[0], 0, counts);
    gb_terms_free(&asking);
    return content && !gb_schema_failed(reader) ? gb_in_brackets(reader, content, false) : 0;
}
