/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of positions in the text is a word. Each kind of expression says from some positions where its texts
 * may end.
 */
#include "grammar/compile/short_texts.h"

#include "grammar/nodes.h"

#include <string.h>

typedef struct walker {
    const gb_expressions *expressions;
    const uint8_t *text;
    size_t size;
    uint64_t steps, most_steps;
    bool is_unknown;
} walker;

#define AT(position) (UINT64_C(1) << (position))

/* The positions of a set, one after the other. */
#define EACH_POSITION(position, set)                                                                         \
    for (uint64_t left_ = (set), position = 0; left_ && (position = (uint64_t)__builtin_ctzll(left_), true); \
         left_ &= left_ - 1)

static uint64_t walk(walker *all, gb_expression expression, uint64_t from);

static uint64_t walk_bytes(const walker *all, const gb_expression_node *node, uint64_t from) {
    uint64_t to = 0;
    EACH_POSITION(at, from)
    if (all->size - at >= node->count &&
        memcmp(all->text + at, all->expressions->bytes.data + node->first, node->count) == 0)
        to |= AT(at + node->count);
    return to;
}

static uint64_t walk_set(const walker *all, const gb_byte_set *set, uint64_t from) {
    uint64_t to = 0;
    EACH_POSITION(at, from & ~AT(all->size))
    if (gb_set_has(set, all->text[at]))
        to |= AT(at + 1);
    return to;
}

static uint64_t walk_sequence(walker *all, const gb_expression_node *node, uint64_t from) {
    for (uint32_t i = 0; i < node->count && from; i++)
        from = walk(all, all->expressions->links[node->first + i], from);
    return from;
}

static uint64_t walk_choice(walker *all, const gb_expression_node *node, uint64_t from) {
    uint64_t to = 0;
    for (uint32_t i = 0; i < node->count; i++)
        to |= walk(all, all->expressions->links[node->first + i], from);
    return to;
}

/* Sets that no longer change, or are empty, stay as they are; that takes at most 64 turns. */
static uint64_t walk_repeat(walker *all, const gb_expression_node *node, uint64_t from) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < node->first && from != before; i++) {
        before = from;
        from = walk(all, node->item, from);
    }
    uint64_t fresh = from;
    for (uint32_t i = node->first; i < node->count && fresh; i++) {
        fresh = walk(all, node->item, fresh) & ~from;
        from |= fresh;
    }
    return from;
}

/* The state that a byte leads to from another one; false: none. */
static bool find_move(const uint32_t *links, uint32_t count, uint8_t byte, uint32_t *state) {
    for (uint32_t at = 1 + links[0]; at < count && links[at + GB_MOVE_FROM] <= *state; at += GB_MOVE_WORDS)
        if (links[at + GB_MOVE_FROM] == *state && byte >= (links[at + GB_MOVE_BYTES] & 255) &&
            byte <= links[at + GB_MOVE_BYTES] >> 8) {
            *state = links[at + GB_MOVE_TO];
            return true;
        }
    return false;
}

static uint64_t walk_states(walker *all, const gb_expression_node *node, uint64_t from) {
    const uint32_t *links = all->expressions->links + node->first;
    uint64_t to = 0;
    EACH_POSITION(begin, from) {
        uint32_t state = 0;
        uint64_t at = begin;
        to |= links[1] ? AT(at) : 0;
        while (at < all->size && find_move(links, node->count, all->text[at], &state)) {
            at++;
            all->steps += node->count / GB_MOVE_WORDS;
            to |= links[1 + state] ? AT(at) : 0;
        }
    }
    return to;
}

static uint64_t walk_product(walker *all, const gb_expression_node *node, uint64_t from) {
    uint64_t to = 0;
    EACH_POSITION(at, from) {
        const uint64_t a = walk(all, node->item, AT(at)), b = a ? walk(all, node->first, AT(at)) : 0;
        to |= node->kind == GB_NODE_BOTH ? a & b : a & ~b;
    }
    return to;
}

static uint64_t walk(walker *all, gb_expression expression, uint64_t from) {
    const gb_expression_node *node = &all->expressions->nodes[expression];
    all->steps += 1 + (uint64_t)__builtin_popcountll(from);
    all->is_unknown |= all->steps > all->most_steps;
    if (!from || all->is_unknown)
        return 0;
    switch ((gb_node_kind)node->kind) {
    case GB_NODE_NOTHING:
        return 0;
    case GB_NODE_EMPTY:
        return from;
    case GB_NODE_BYTES:
        return walk_bytes(all, node, from);
    case GB_NODE_BYTE_SET:
        return walk_set(all, &all->expressions->sets[node->first], from);
    case GB_NODE_SEQUENCE:
        return walk_sequence(all, node, from);
    case GB_NODE_CHOICE:
        return walk_choice(all, node, from);
    case GB_NODE_REPEAT:
        return walk_repeat(all, node, from);
    case GB_NODE_BOTH:
    case GB_NODE_EXCEPT:
        return walk_product(all, node, from);
    case GB_NODE_STATES:
        return walk_states(all, node, from);
    case GB_NODE_RULE:
    case GB_NODE_TOKEN:
    case GB_NODE_ANY_ORDER:
    case GB_NODE_DISTINCT:
        all->is_unknown = true;
    }
    return 0;
}

gb_text_place gb_try_short_text(const gb_expressions *expressions, gb_expression expression,
                                const uint8_t *text, size_t size, uint64_t *steps) {
    walker all = {.expressions = expressions,
                  .text = size ? text : (const uint8_t *)"",
                  .size = size,
                  .most_steps = *steps};
    *steps = 0;
    if (size > GB_MAX_SHORT_TEXT)
        return GB_TEXT_IS_UNKNOWN;
    const uint64_t ends = walk(&all, expression, AT(0));
    *steps = all.steps;
    if (all.is_unknown)
        return GB_TEXT_IS_UNKNOWN;
    return ends >> size & 1 ? GB_TEXT_IS_IN : GB_TEXT_IS_OUT;
}
