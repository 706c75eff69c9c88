/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that a schema does not allow.
 */
#include "grammar/schema/negate/negation.h"
#include "grammar/schema/rewrite/made.h"

/* An array with an item from this index on that satisfies the schema, which is taken. */
static json_t *with_item_from(size_t from, json_t *item) {
    json_t *array = json_pack("{s:s, s:o}", "type", "array", "contains", item);
    if (array && from > 0 &&
        json_object_set_new_nocheck(array, GB_CONTAINS_FROM, json_integer((json_int_t)from)) != 0) {
        json_decref(array);
        return NULL;
    }
    return array;
}

/* An array whose item at this index satisfies the schema, which is taken. */
static json_t *with_item_at(size_t index, json_t *item) {
    json_t *items = json_array();
    for (size_t i = 0; items && i < index; i++)
        items = gb_append_value(items, json_true());
    items = gb_append_value(items, item); /* which takes the item without them, too */
    return json_pack("{s:s, s:I, s:o}", "type", "array", "minItems", (json_int_t)index + 1, "prefixItems",
                     items);
}

json_t *gb_negate_prefix_items(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    if (json_array_size(value) > GB_MOST_NEGATED)
        return gb_refuse_many(at, key);
    json_t *parts = json_array();
    (void)schema;
    for (size_t i = 0; parts && i < json_array_size(value); i++) {
        json_t *negated = gb_negate_later(json_array_get(value, i));
        parts = gb_append_value(parts, negated ? with_item_at(i, negated) : NULL);
    }
    return gb_any_of(parts);
}

static json_t *negate_rest(const json_t *prefix, const json_t *value) {
    json_t *negated = gb_negate_later(value);
    return negated ? with_item_from(json_array_size(prefix), negated) : NULL;
}

/* In older drafts a list, which is that of the first items. */
json_t *gb_negate_items(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    return json_is_array(value) ? gb_negate_prefix_items(at, schema, key, value)
                                : negate_rest(json_object_get(schema, "prefixItems"), value);
}

/* It counts beside a list of items alone. */
json_t *gb_negate_other_items(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    (void)at;
    const json_t *items = json_object_get(schema, "items");
    (void)key;
    return json_is_array(items) ? negate_rest(items, value) : json_false();
}

/* Takes parts; adds arrays in which fewer items than `least` satisfy the schema. */
static json_t *add_fewer(json_t *parts, json_t *item, json_int_t least) {
    if (least != 1)
        return gb_append_value(parts, json_pack("{s:s, s:O, s:i, s:I}", "type", "array", "contains", item,
                                                "minContains", 0, "maxContains", least - 1));
    json_t *negated = gb_negate_later(item);
    return gb_append_value(parts,
                           negated ? json_pack("{s:s, s:o}", "type", "array", "items", negated) : NULL);
}

json_t *gb_negate_contains(gb_negation *at, const json_t *schema, const char *key, json_t *value) {
    const json_t *least = json_object_get(schema, "minContains"),
                 *most = json_object_get(schema, "maxContains");
    const json_int_t fewest = least ? json_integer_value(least) : 1;
    json_t *parts = json_array();
    if ((least && !json_is_integer(least)) || (most && !json_is_integer(most)))
        return json_decref(parts), gb_refuse_negation(at, schema, key, value);
    if (parts && fewest > 0)
        parts = add_fewer(parts, value, fewest);
    if (parts && most && json_integer_value(most) < GB_NO_END)
        parts = gb_append_value(parts, json_pack("{s:s, s:O, s:I}", "type", "array", "contains", value,
                                                 "minContains", json_integer_value(most) + 1));
    return gb_any_of(parts);
}
