/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "grammar/schema/composite/composite.h"
#include "grammar/schema/composite/contains.h"
#include "grammar/schema/composite/items.h"
#include "grammar/schema/composite/members.h"

gb_expression gb_express_item(gb_schema_reader *reader, const gb_terms *terms, size_t index,
                              const gb_terms *also) {
    gb_terms item = {0};
    bool is_found = gb_item_terms(reader, terms, index, &item);
    if (is_found && also && !gb_terms_add_all(&item, also))
        is_found = gb_schema_no_memory(reader);
    const gb_expression value = is_found ? gb_express_value(reader, &item) : 0;
    gb_terms_free(&item);
    return value ? GB_JOIN(reader, value, reader->space) : 0;
}

gb_expression gb_in_brackets(gb_schema_reader *reader, gb_expression content, bool may_be_empty) {
    return GB_JOIN(reader, gb_literal(reader, "["), reader->space,
                   may_be_empty ? GB_EITHER(reader, reader->empty, content) : content,
                   gb_literal(reader, "]"));
}

/* A list of `item`, at least one of them. */
static gb_expression express_list(gb_schema_reader *reader, gb_expression item, gb_counts counts) {
    const uint32_t more = counts.most == GB_NO_END ? GB_NO_END : counts.most - 1;
    return GB_JOIN(reader, item,
                   gb_express_repeat(reader->expressions, GB_JOIN(reader, reader->comma, item),
                                     counts.least ? counts.least - 1 : 0, more));
}

/* What follows the items before `from`: items[from, count), then any number of `rest`. */
static gb_expression express_tail(gb_schema_reader *reader, const gb_expression *items, size_t from,
                                  size_t count, gb_expression rest, gb_counts counts) {
    gb_expression tail = reader->empty;
    if (rest != reader->nothing && counts.most > count)
        tail = gb_express_repeat(reader->expressions, GB_JOIN(reader, reader->comma, rest),
                                 counts.least > count ? counts.least - (uint32_t)count : 0,
                                 counts.most == GB_NO_END ? GB_NO_END : counts.most - (uint32_t)count);
    for (size_t i = count; i-- > from;) {
        tail = GB_JOIN(reader, reader->comma, items[i], tail);
        if (i >= counts.least)
            tail = gb_express_repeat(reader->expressions, tail, 0, 1);
    }
    return tail;
}

/* What stands in the brackets where there is an item. */
static gb_expression express_items(gb_schema_reader *reader, const gb_expression *items, size_t count,
                                   gb_expression rest, gb_counts counts) {
    if (count > 0)
        return GB_JOIN(reader, items[0], express_tail(reader, items, 1, count, rest, counts));
    return rest == reader->nothing ? reader->nothing : express_list(reader, rest, counts);
}

static gb_expression express_brackets(gb_schema_reader *reader, const gb_expression *items, size_t count,
                                      gb_expression rest, gb_counts counts) {
    for (size_t i = 0; i < count; i++)
        if (items[i] == reader->nothing && i < counts.most)
            counts.most = (uint32_t)i;
    if (rest == reader->nothing && counts.most > count)
        counts.most = (uint32_t)count;
    if (count > counts.most)
        count = counts.most;
    if (counts.least > counts.most)
        return reader->nothing;
    const gb_expression content =
        counts.most ? express_items(reader, items, count, rest, counts) : reader->nothing;
    return gb_in_brackets(reader, content, counts.least == 0);
}

gb_expression gb_express_any_items(gb_schema_reader *reader, const gb_terms *terms, gb_counts counts) {
    size_t count = gb_prefix_count(reader, terms);
    if (count > counts.most)
        count = counts.most;
    gb_expression *items = gb_allocate(count, sizeof *items);
    if (!items)
        return gb_schema_no_memory(reader);
    for (size_t i = 0; i < count; i++)
        items[i] = gb_express_item(reader, terms, i, NULL);
    const gb_expression rest =
        counts.most > count ? gb_express_item(reader, terms, count, NULL) : reader->nothing;
    const gb_expression array =
        gb_schema_failed(reader) ? 0 : express_brackets(reader, items, count, rest, counts);
    gb_free(items);
    return array;
}

gb_expression gb_express_array(gb_schema_reader *reader, const gb_terms *terms) {
    const gb_counts counts = gb_read_counts(reader, terms, "minItems", "maxItems");
    const bool contains = gb_asks_contains(reader, terms);
    const bool is_unique = gb_asks_unique(reader, terms) && counts.most > 1;
    if (gb_schema_failed(reader))
        return 0;
    if (is_unique && contains)
        return gb_schema_fail(reader, terms->items[0], "uniqueItems", GUMBEL_ERROR_UNSUPPORTED,
                              "it cannot be honoured beside contains");
    if (contains)
        return gb_express_containing(reader, terms, counts);
    return is_unique ? gb_express_unique(reader, terms, counts) : gb_express_any_items(reader, terms, counts);
}
