/* SPDX-License-Identifier: Apache-2.0
 *
 * Items in any order.
 */
#include "base/memory.h"
#include "grammar/nodes.h"

/* Where the items stand: those that are required first, then the others. */
static void place_items(const gb_any_order *any, uint32_t *place_of) {
    uint32_t place = 0;
    for (int required = 1; required >= 0; required--)
        for (size_t i = 0; i < any->count; i++)
            if (any->items[i].required == (bool)required)
                place_of[i] = place++;
}

static void add_items(gb_expressions *expressions, const gb_any_order *any, gb_order *order) {
    order->first = (uint32_t)expressions->link_count;
    order->count = (uint32_t)any->count;
    for (int required = 1; required >= 0; required--)
        for (size_t i = 0; i < any->count; i++)
            if (any->items[i].required == (bool)required && gb_add_links(expressions, &any->items[i].item, 1))
                order->required += (uint32_t)required;
}

/* ---- Implications -------------------------------------------------------------------------------------- */

/* Adds to each row the rows of the items in it, until nothing is new. */
static bool close_rows(gb_expressions *expressions, uint32_t *rows, uint32_t count, uint32_t words) {
    for (uint32_t by = 0; by < count; by++) {
        if (!gb_expressions_go_on(expressions, count))
            return false;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t word = 0; rows[(size_t)i * words + by / 32] >> (by % 32) & 1u && word < words;
                 word++)
                rows[(size_t)i * words + word] |= rows[(size_t)by * words + word];
    }
    return true;
}

/* Those that are required stand beside every item, so that each row has them and what they need. */
static void fill_rows(const gb_any_order *any, uint32_t required, const uint32_t *place_of, uint32_t words,
                      uint32_t *rows) {
    for (size_t i = 0; i < any->implication_count; i++) {
        const uint32_t needed = place_of[any->implications[i].needed];
        rows[(size_t)place_of[any->implications[i].item] * words + needed / 32] |= 1u << (needed % 32);
    }
    for (size_t i = 0; i < any->count; i++) {
        rows[i * words + i / 32] |= 1u << (i % 32);
        for (uint32_t k = 0; k < required; k++)
            rows[i * words + k / 32] |= 1u << (k % 32);
    }
}

static void add_implications(gb_expressions *expressions, const gb_any_order *any, gb_order *order) {
    const uint32_t words = (order->count + 31) / 32;
    uint32_t *rows = gb_allocate((size_t)order->count * words, sizeof *rows);
    uint32_t *place_of = gb_allocate(order->count, sizeof *place_of);
    if (rows && place_of) {
        place_items(any, place_of);
        fill_rows(any, order->required, place_of, words, rows);
        order->words = words;
        order->implied = (uint32_t)expressions->link_count;
        if (close_rows(expressions, rows, order->count, words))
            gb_add_links(expressions, rows, (size_t)order->count * words);
    } else {
        gb_expressions_no_memory(expressions);
    }
    gb_free(rows);
    gb_free(place_of);
}

/* Whether enough items can always be had: sets that hold all that they need may leave out numbers. */
static bool are_implications(const gb_any_order *any) {
    uint32_t required = 1;
    for (size_t i = 0; i < any->implication_count; i++)
        if (any->implications[i].item >= any->count || any->implications[i].needed >= any->count)
            return false;
    for (size_t i = 0; i < any->count; i++)
        required += any->items[i].required;
    return any->implication_count == 0 || any->most >= any->count ||
           any->least < (required > 1 ? required : 2);
}

/* ---- The node ------------------------------------------------------------------------------------------ */

static unsigned depth_of(gb_expressions *expressions, const gb_any_order *any, const gb_order *order) {
    unsigned depth = gb_greatest_depth(expressions, (gb_expression[]){order->separator, order->rest}, 2);
    for (size_t i = 0; i < any->count; i++) {
        const unsigned of_item = gb_item_depth(expressions, any->items[i].item);
        depth = of_item > depth ? of_item : depth;
    }
    return depth;
}

static gb_expression add_order(gb_expressions *expressions, const gb_order *order, unsigned depth) {
    if (!gb_grow((void **)&expressions->orders, &expressions->order_capacity, expressions->order_count + 1,
                 sizeof *order))
        return gb_expressions_no_memory(expressions);
    expressions->orders[expressions->order_count] = *order;
    return gb_add_node(
        expressions,
        (gb_expression_node){.kind = GB_NODE_ANY_ORDER, .first = (uint32_t)expressions->order_count++},
        depth);
}

gb_expression gb_express_any_order(gb_expressions *expressions, const gb_any_order *any) {
    if (any->most < any->least)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT,
                                   "grammar: items in any order, at least %u and at most %u of them",
                                   any->least, any->most);
    if (!are_implications(any))
        return gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT,
                                   "grammar: items in any order that imply others, of which there may be "
                                   "too few or too many");
    gb_order order = {.separator = any->separator, .rest = any->rest, .least = any->least, .most = any->most};
    if (!order.separator)
        order.separator = gb_express_empty(expressions);
    if (!order.rest)
        order.rest = gb_express_nothing(expressions);
    const unsigned depth = depth_of(expressions, any, &order);
    add_items(expressions, any, &order);
    if (any->implication_count)
        add_implications(expressions, any, &order);
    return gb_expressions_error(expressions, NULL) == GUMBEL_OK ? add_order(expressions, &order, depth) : 0;
}
