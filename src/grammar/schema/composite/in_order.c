/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/composite/in_order.h"

#include "base/memory.h"

#include <stdio.h>

/* tails[i]: what follows an earlier member from items[i] on. They are rules, so that each stands once. */
typedef struct in_order {
    gb_schema_reader *reader;
    const gb_any_order_item *items;
    size_t count;
    gb_expression rest, close;
    gb_expression *tails;
} in_order;

static gb_expression named(in_order *all, size_t index, gb_expression item) {
    char name[80];
    snprintf(name, sizeof name, "%s.%zu from %zu", all->reader->rule_prefix, ++all->reader->order_count,
             index);
    const gb_expression rule = gb_express_rule(all->reader->expressions, name);
    gb_define_rule(all->reader->expressions, rule, item);
    return rule;
}

static gb_expression others(in_order *all, uint32_t least, uint32_t most) {
    return all->rest == all->reader->nothing
               ? all->reader->empty
               : gb_express_repeat(all->reader->expressions,
                                   GB_JOIN(all->reader, all->reader->comma, all->rest), least, most);
}

static void find_tails(in_order *all, gb_counts of_rest) {
    gb_schema_reader *reader = all->reader;
    all->tails[all->count] =
        named(all, all->count, GB_JOIN(reader, others(all, of_rest.least, of_rest.most), all->close));
    for (size_t i = all->count; i-- > 0;) {
        const gb_expression item = GB_JOIN(reader, reader->comma, all->items[i].item);
        const gb_expression kept =
            all->items[i].required ? item : gb_express_repeat(reader->expressions, item, 0, 1);
        all->tails[i] = named(all, i, GB_JOIN(reader, kept, all->tails[i + 1]));
    }
}

/* The members from the first one on: any up to the first that is required. items has room for them and two
 * more. */
static gb_expression from_first(in_order *all, gb_counts of_rest, bool may_be_empty, gb_expression *items) {
    gb_schema_reader *reader = all->reader;
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        items[count++] = GB_JOIN(reader, all->items[i].item, all->tails[i + 1]);
        if (all->items[i].required)
            return gb_either(reader, items, count);
    }
    if (all->rest != reader->nothing && of_rest.most > 0) {
        const uint32_t more = of_rest.most == GB_NO_END ? GB_NO_END : of_rest.most - 1;
        const uint32_t least = of_rest.least ? of_rest.least - 1 : 0;
        items[count++] = GB_JOIN(reader, all->rest, others(all, least, more), all->close);
    }
    if (may_be_empty)
        items[count++] = all->close;
    return gb_either(reader, items, count);
}

/* How many others there may be. Counts are honoured where they follow from these alone. */
static bool count_others(in_order *all, const json_t *schema, gb_counts counts, size_t required,
                         gb_counts *of_rest) {
    const bool has_rest = all->rest != all->reader->nothing;
    *of_rest = (gb_counts){0, GB_NO_END};
    if (required == all->count) {
        of_rest->least = counts.least > required ? counts.least - (uint32_t)required : 0;
        of_rest->most = counts.most == GB_NO_END ? GB_NO_END : counts.most - (uint32_t)required;
        return true;
    }
    if (counts.least > required && !(counts.least == 1 && required == 0))
        return gb_schema_fail(all->reader, schema, "minProperties", GUMBEL_ERROR_UNSUPPORTED,
                              "in order, beside members that are not required");
    if (counts.most != GB_NO_END && (has_rest || counts.most < all->count))
        return gb_schema_fail(all->reader, schema, "maxProperties", GUMBEL_ERROR_UNSUPPORTED,
                              "in order, beside members that are not required");
    return true;
}

gb_expression gb_express_in_order(gb_schema_reader *reader, const json_t *schema,
                                  const gb_any_order_item *items, size_t count, gb_expression rest,
                                  gb_counts counts) {
    in_order all = {
        .reader = reader, .items = items, .count = count, .rest = rest, .close = gb_literal(reader, "}")};
    gb_counts of_rest;
    size_t required = 0;
    for (size_t i = 0; i < count; i++)
        required += items[i].required;
    if (counts.most < required || (rest == reader->nothing && counts.least > count))
        return reader->nothing;
    if (!count_others(&all, schema, counts, required, &of_rest))
        return 0;
    all.tails = gb_allocate(count + 1, sizeof *all.tails);
    gb_expression *firsts = gb_allocate(count + 2, sizeof *firsts);
    gb_expression members = 0;
    if (all.tails && firsts) {
        find_tails(&all, of_rest);
        members = from_first(&all, of_rest, counts.least == 0, firsts);
    }
    gb_free(all.tails);
    gb_free(firsts);
    return members ? members : gb_schema_no_memory(reader);
}
