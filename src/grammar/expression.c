/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/expression.h"

#include "base/memory.h"
#include "grammar/nodes.h"

#include <stdio.h>
#include <string.h>

gb_expressions *gb_expressions_create(void) {
    gb_expressions *expressions = gb_allocate(1, sizeof *expressions);
    if (expressions)
        gb_add_node(expressions, (gb_expression_node){.kind = GB_NODE_NOTHING}, 0); /* expression 0 is none */
    return expressions;
}

void gb_expressions_destroy(gb_expressions *expressions) {
    if (!expressions)
        return;
    for (size_t i = 0; i < expressions->rule_count; i++)
        gb_free(expressions->rules[i].name);
    gb_free(expressions->nodes);
    gb_free(expressions->links);
    gb_free(expressions->sets);
    gb_buffer_free(&expressions->bytes);
    gb_free(expressions->rules);
    gb_free(expressions->rule_slots);
    gb_free(expressions->orders);
    gb_free(expressions);
}

gumbel_status gb_expressions_error(const gb_expressions *expressions, gumbel_error *error) {
    if (error && expressions->error.status != GUMBEL_OK)
        *error = expressions->error;
    return expressions->error.status;
}

gb_expression gb_expressions_fail(gb_expressions *expressions, gumbel_status status, const char *format,
                                  ...) {
    if (expressions->error.status != GUMBEL_OK)
        return 0;
    char message[sizeof expressions->error.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    gb_fail(&expressions->error, status, "%s", message);
    return 0;
}

void gb_expressions_watch(gb_expressions *expressions, gb_watch *watch) {
    expressions->watch = watch;
}

bool gb_expressions_go_on(gb_expressions *expressions, uint64_t steps) {
    if (!gb_watch_goes_on(expressions->watch, steps))
        gb_expressions_fail(expressions, expressions->watch->error.status, "%s",
                            expressions->watch->error.message);
    return expressions->error.status == GUMBEL_OK;
}

gb_expression gb_expressions_no_memory(gb_expressions *expressions) {
    return gb_expressions_fail(expressions, GUMBEL_ERROR_MEMORY, "grammar: no memory for its expressions");
}

gb_expression gb_add_node(gb_expressions *expressions, gb_expression_node node, unsigned depth) {
    if (!gb_expressions_go_on(expressions, 1))
        return 0;
    if (depth >= GB_MAX_EXPRESSION_DEPTH)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_LIMIT, "grammar: nested deeper than %d",
                                   GB_MAX_EXPRESSION_DEPTH);
    if (expressions->node_count >= GB_MAX_EXPRESSIONS)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_LIMIT, "grammar: more than %u expressions",
                                   GB_MAX_EXPRESSIONS);
    if (!gb_grow((void **)&expressions->nodes, &expressions->node_capacity, expressions->node_count + 1,
                 sizeof node))
        return gb_expressions_no_memory(expressions);
    node.depth = (uint16_t)(depth + 1);
    expressions->nodes[expressions->node_count] = node;
    return (gb_expression)expressions->node_count++;
}

unsigned gb_item_depth(gb_expressions *expressions, gb_expression item) {
    if (item && item < expressions->node_count)
        return expressions->nodes[item].depth;
    gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT,
                        "grammar: expression %u is none of its expressions", item);
    return 0;
}

gb_expression gb_express_empty(gb_expressions *expressions) {
    return gb_add_node(expressions, (gb_expression_node){.kind = GB_NODE_EMPTY}, 0);
}

gb_expression gb_express_nothing(gb_expressions *expressions) {
    return gb_add_node(expressions, (gb_expression_node){.kind = GB_NODE_NOTHING}, 0);
}

gb_expression gb_express_bytes(gb_expressions *expressions, const void *data, size_t size) {
    if (size == 0)
        return gb_express_empty(expressions);
    gb_byte_buffer *bytes = &expressions->bytes;
    if (size > UINT32_MAX - bytes->size)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_LIMIT, "grammar: more than 4 GiB of text");
    gb_expression_node node = {
        .kind = GB_NODE_BYTES, .first = (uint32_t)bytes->size, .count = (uint32_t)size};
    gb_buffer_append(bytes, data, size);
    return bytes->failed ? gb_expressions_no_memory(expressions) : gb_add_node(expressions, node, 0);
}

gb_expression gb_express_byte_set(gb_expressions *expressions, const uint32_t set[8]) {
    if (!gb_grow((void **)&expressions->sets, &expressions->set_capacity, expressions->set_count + 1,
                 sizeof *expressions->sets))
        return gb_expressions_no_memory(expressions);
    gb_byte_set *added = &expressions->sets[expressions->set_count];
    memcpy(added->words, set, sizeof added->words);
    gb_expression_node node = {.kind = GB_NODE_BYTE_SET, .first = (uint32_t)expressions->set_count++};
    return gb_add_node(expressions, node, 0);
}

bool gb_add_links(gb_expressions *expressions, const gb_expression *items, size_t count) {
    size_t needed = expressions->link_count + count;
    if (count > GB_MAX_EXPRESSIONS || needed > UINT32_MAX ||
        !gb_grow((void **)&expressions->links, &expressions->link_capacity, needed, sizeof *items)) {
        gb_expressions_no_memory(expressions);
        return false;
    }
    memcpy(expressions->links + expressions->link_count, items, count * sizeof *items);
    expressions->link_count = needed;
    return true;
}

unsigned gb_greatest_depth(gb_expressions *expressions, const gb_expression *items, size_t count) {
    unsigned depth = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned of_item = gb_item_depth(expressions, items[i]);
        depth = of_item > depth ? of_item : depth;
    }
    return depth;
}

static gb_expression express_list(gb_expressions *expressions, gb_node_kind kind, const gb_expression *items,
                                  size_t count) {
    unsigned depth = gb_greatest_depth(expressions, items, count);
    if (count == 1 || expressions->error.status != GUMBEL_OK)
        return expressions->error.status == GUMBEL_OK ? items[0] : 0;
    gb_expression_node node = {
        .kind = (uint16_t)kind, .first = (uint32_t)expressions->link_count, .count = (uint32_t)count};
    return gb_add_links(expressions, items, count) ? gb_add_node(expressions, node, depth) : 0;
}

gb_expression gb_express_sequence(gb_expressions *expressions, const gb_expression *items, size_t count) {
    return count ? express_list(expressions, GB_NODE_SEQUENCE, items, count) : gb_express_empty(expressions);
}

gb_expression gb_express_choice(gb_expressions *expressions, const gb_expression *items, size_t count) {
    return count ? express_list(expressions, GB_NODE_CHOICE, items, count) : gb_express_nothing(expressions);
}

gb_expression gb_express_repeat(gb_expressions *expressions, gb_expression item, uint32_t least,
                                uint32_t most) {
    unsigned depth = gb_item_depth(expressions, item);
    if (most < least)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT,
                                   "grammar: a repeat of at least %u and at most %u times", least, most);
    if (most == 0)
        return gb_express_empty(expressions);
    if (least == 1 && most == 1)
        return item;
    return gb_add_node(
        expressions,
        (gb_expression_node){.kind = GB_NODE_REPEAT, .item = item, .first = least, .count = most}, depth);
}

static bool are_moves(const gb_byte_move *moves, size_t move_count, size_t state_count) {
    for (size_t i = 0; i < move_count; i++)
        if (moves[i].from >= state_count || moves[i].to >= state_count ||
            (i > 0 && moves[i].from < moves[i - 1].from))
            return false;
    return state_count > 0;
}

gb_expression gb_express_automaton(gb_expressions *expressions, const gb_byte_move *moves, size_t move_count,
                                   const bool *accepts, size_t state_count) {
    if (!are_moves(moves, move_count, state_count))
        return gb_expressions_fail(
            expressions, GUMBEL_ERROR_ARGUMENT,
            "grammar: an automaton whose moves are not between its states, in their order");
    const uint32_t first = (uint32_t)expressions->link_count, states = (uint32_t)state_count;
    bool is_added = gb_add_links(expressions, &states, 1);
    for (size_t i = 0; i < state_count && is_added; i++)
        is_added = gb_add_links(expressions, (uint32_t[]){accepts[i]}, 1);
    for (size_t i = 0; i < move_count && is_added; i++) {
        const uint32_t bytes = moves[i].first | (uint32_t)moves[i].last << 8;
        is_added = gb_add_links(expressions, (uint32_t[]){moves[i].from, moves[i].to, bytes}, GB_MOVE_WORDS);
    }
    const gb_expression_node node = {
        .kind = GB_NODE_STATES, .first = first, .count = (uint32_t)expressions->link_count - first};
    return is_added ? gb_add_node(expressions, node, 0) : 0;
}

static gb_expression express_pair(gb_expressions *expressions, gb_node_kind kind, gb_expression a,
                                  gb_expression b) {
    unsigned depth = gb_greatest_depth(expressions, (gb_expression[]){a, b}, 2);
    return gb_add_node(expressions, (gb_expression_node){.kind = (uint16_t)kind, .item = a, .first = b},
                       depth);
}

gb_expression gb_express_both(gb_expressions *expressions, gb_expression a, gb_expression b) {
    return express_pair(expressions, GB_NODE_BOTH, a, b);
}

gb_expression gb_express_except(gb_expressions *expressions, gb_expression a, gb_expression b) {
    return express_pair(expressions, GB_NODE_EXCEPT, a, b);
}

gb_expression gb_express_token(gb_expressions *expressions, uint32_t id) {
    return gb_add_node(expressions, (gb_expression_node){.kind = GB_NODE_TOKEN, .first = id}, 0);
}

gb_expression gb_express_other_token(gb_expressions *expressions, uint32_t id) {
    return gb_add_node(expressions, (gb_expression_node){.kind = GB_NODE_TOKEN, .first = id, .count = 1}, 0);
}
