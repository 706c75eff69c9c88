/* SPDX-License-Identifier: Apache-2.0
 *
 * contains beside prefixItems.
 */
#include "grammar/schema/composite/contained.h"
#include "grammar/schema/composite/contains.h"
#include "grammar/schema/composite/members.h"

static uint32_t less(uint32_t count, uint32_t by) {
    return count == GB_NO_END ? count : count > by ? count - by : 0;
}

/* The first `count` items, of which the one at `place` is contained, with a comma behind each. */
static gb_expression express_prefix(gb_schema_reader *reader, const gb_terms *terms, const json_t *contained,
                                    size_t count, size_t place) {
    gb_value_parts parts = {0};
    bool is_added = gb_parts_add(reader, &parts, reader->empty);
    for (size_t i = 0; i < count && is_added; i++)
        is_added = gb_parts_add(reader, &parts,
                                i == place ? gb_express_contained(reader, terms, i, contained)
                                           : gb_express_item(reader, terms, i, NULL)) &&
                   gb_parts_add(reader, &parts, i + 1 < count ? reader->comma : reader->empty);
    return gb_parts_join(reader, &parts);
}

/* What may follow the first `from` items; those from `prefix` on, which is not below it, are asked the same.
 */
static gb_expression express_tail(gb_schema_reader *reader, const gb_terms *terms, size_t from, size_t prefix,
                                  gb_counts counts) {
    gb_expression tail = reader->empty;
    if (counts.most > prefix) {
        const gb_expression rest = gb_express_item(reader, terms, prefix, NULL);
        const uint32_t least = less(counts.least, (uint32_t)prefix);
        if (rest == reader->nothing)
            tail = least ? rest : reader->empty;
        else
            tail = gb_express_repeat(reader->expressions, GB_JOIN(reader, reader->comma, rest), least,
                                     less(counts.most, (uint32_t)prefix));
    }
    for (size_t i = prefix < counts.most ? prefix : counts.most; i-- > from;) {
        tail = GB_JOIN(reader, reader->comma, gb_express_item(reader, terms, i, NULL), tail);
        tail = i < counts.least ? tail : GB_EITHER(reader, reader->empty, tail);
    }
    return tail;
}

/* The first item that is contained is one of the prefix, or behind it. */
gb_expression gb_express_beside_prefix(gb_schema_reader *reader, const gb_terms *terms, const json_t *schema,
                                       gb_counts counts) {
    const gb_counts asked = gb_read_contains(reader, schema);
    const json_t *contained = json_object_get(schema, "contains");
    const size_t first = gb_contains_from(schema), known = gb_prefix_count(reader, terms);
    const size_t prefix = known > first ? known : first;
    gb_value_parts ways = {0};
    bool is_added = true;
    if (asked.least != 1 || asked.most != GB_NO_END)
        return gb_refuse_contains(reader, schema, "beside counts and a prefix");
    for (size_t i = first; i < prefix && i < counts.most && is_added; i++)
        is_added = gb_parts_add(reader, &ways,
                                GB_JOIN(reader, express_prefix(reader, terms, contained, i + 1, i),
                                        express_tail(reader, terms, i + 1, prefix, counts)));
    if (is_added && counts.most > prefix) {
        const gb_counts left = {less(counts.least, (uint32_t)prefix), less(counts.most, (uint32_t)prefix)};
        gb_parts_add(reader, &ways,
                     GB_JOIN(reader, express_prefix(reader, terms, NULL, prefix, SIZE_MAX), reader->comma,
                             gb_express_counted(reader, terms, schema, prefix, left)));
    }
    return gb_parts_either(reader, &ways);
}
