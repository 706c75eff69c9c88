/* SPDX-License-Identifier: Apache-2.0
 *
 * What an expression means, read off its definition: all the places where a match that begins at a place of a
 * short text can end. Slow, and with nothing in common with the compiler.
 */
#ifndef GUMBEL_TESTS_GRAMMAR_NAIVE_H
#define GUMBEL_TESTS_GRAMMAR_NAIVE_H

#include "grammar/nodes.h"

#include <string.h>

typedef struct naive {
    const gb_expressions *expressions;
    const char *text;
    unsigned length; /* at most 31 */
} naive;

typedef uint32_t ends; /* bit i: a match can end before byte i */

static ends naive_match(const naive *on, gb_expression expression, unsigned from, unsigned depth);

static ends naive_after(const naive *on, gb_expression item, ends begins, unsigned depth) {
    ends all = 0;
    for (unsigned i = 0; i <= on->length; i++)
        if (begins >> i & 1u)
            all |= naive_match(on, item, i, depth);
    return all;
}

static ends naive_repeat(const naive *on, const gb_expression_node *node, unsigned from, unsigned depth) {
    ends at = 1u << from, all = 0;
    /* More than length + 1 rounds add nothing but those that are empty. */
    uint32_t rounds = node->first + on->length + 2;
    for (uint32_t i = 0; i <= rounds && i <= node->count; i++) {
        if (i >= node->first)
            all |= at;
        at = naive_after(on, node->item, at, depth);
    }
    return all;
}

static ends naive_order(const naive *on, const gb_order *order, ends at, uint32_t seen, uint32_t count,
                        unsigned depth) {
    uint32_t required = (1u << order->required) - 1;
    for (uint32_t i = 0; i < order->count; i++)
        for (uint32_t k = 0; k < order->count; k++)
            required |= seen >> i & 1u && gb_order_implies(on->expressions, order, i, k) ? 1u << k : 0;
    ends all = (seen & required) == required && count >= order->least ? at : 0;
    if (!at || count == order->most || count > on->length)
        return all;
    ends begins = count ? naive_after(on, order->separator, at, depth) : at;
    for (uint32_t i = 0; i < order->count; i++)
        if (!(seen >> i & 1u)) {
            gb_expression item = on->expressions->links[order->first + i];
            all |= naive_order(on, order, naive_after(on, item, begins, depth), seen | 1u << i, count + 1,
                               depth);
        }
    return all | naive_order(on, order, naive_after(on, order->rest, begins, depth), seen, count + 1, depth);
}

/* Items that differ: spans[0, count) are those before `at`, two ends each. */
static ends naive_distinct(const naive *on, const gb_expression_node *node, unsigned at, unsigned (*spans)[2],
                           unsigned count, unsigned depth) {
    const uint32_t *bounds = on->expressions->links + node->first; /* separator, least, most */
    ends all = count >= bounds[1] ? 1u << at : 0;
    if (count == bounds[2] || count > on->length)
        return all;
    unsigned longer[34][2];
    if (count)
        memcpy(longer, spans, count * sizeof *longer);
    const ends begins = count ? naive_match(on, bounds[0], at, depth) : 1u << at;
    for (unsigned from = at; from <= on->length; from++) {
        const ends items = begins >> from & 1u ? naive_match(on, node->item, from, depth) : 0;
        for (unsigned to = from; to <= on->length; to++) {
            bool is_new = items >> to & 1u;
            for (unsigned i = 0; i < count && is_new; i++)
                is_new = longer[i][1] - longer[i][0] != to - from ||
                         memcmp(on->text + longer[i][0], on->text + from, to - from) != 0;
            longer[count][0] = from;
            longer[count][1] = to;
            all |= is_new ? naive_distinct(on, node, to, longer, count + 1, depth) : 0;
        }
    }
    return all;
}

static ends naive_states(const naive *on, const gb_expression_node *node, unsigned from) {
    const uint32_t *links = on->expressions->links + node->first;
    uint32_t state = 0;
    ends all = links[1] ? 1u << from : 0;
    for (unsigned at = from; at < on->length; at++) {
        uint32_t next = links[0], byte = (uint8_t)on->text[at];
        for (uint32_t i = 1 + links[0]; i < node->count; i += GB_MOVE_WORDS)
            if (links[i + GB_MOVE_FROM] == state && byte >= (links[i + GB_MOVE_BYTES] & 255) &&
                byte <= links[i + GB_MOVE_BYTES] >> 8)
                next = links[i + GB_MOVE_TO];
        if (next == links[0])
            break;
        state = next;
        all |= links[1 + state] ? 2u << at : 0;
    }
    return all;
}

static ends naive_match(const naive *on, gb_expression expression, unsigned from, unsigned depth) {
    const gb_expression_node *node = &on->expressions->nodes[expression];
    ends at = 1u << from, all = 0;
    if (depth > 200)
        return 0;
    switch ((gb_node_kind)node->kind) {
    case GB_NODE_NOTHING:
    case GB_NODE_TOKEN:
        return 0;
    case GB_NODE_EMPTY:
        return at;
    case GB_NODE_BYTES:
        for (uint32_t i = 0; i < node->count; i++)
            if (from + i >= on->length ||
                (uint8_t)on->text[from + i] != on->expressions->bytes.data[node->first + i])
                return 0;
        return at << node->count;
    case GB_NODE_BYTE_SET:
        if (from == on->length)
            return 0;
        return gb_set_has(&on->expressions->sets[node->first], (uint8_t)on->text[from]) ? at << 1 : 0;
    case GB_NODE_STATES:
        return naive_states(on, node, from);
    case GB_NODE_SEQUENCE:
        for (uint32_t i = 0; i < node->count; i++)
            at = naive_after(on, on->expressions->links[node->first + i], at, depth + 1);
        return at;
    case GB_NODE_CHOICE:
        for (uint32_t i = 0; i < node->count; i++)
            all |= naive_match(on, on->expressions->links[node->first + i], from, depth + 1);
        return all;
    case GB_NODE_REPEAT:
        return naive_repeat(on, node, from, depth + 1);
    case GB_NODE_BOTH:
        return naive_match(on, node->item, from, depth + 1) & naive_match(on, node->first, from, depth + 1);
    case GB_NODE_EXCEPT:
        return naive_match(on, node->item, from, depth + 1) & ~naive_match(on, node->first, from, depth + 1);
    case GB_NODE_RULE:
        return naive_match(on, on->expressions->rules[node->first].item, from, depth + 1);
    case GB_NODE_ANY_ORDER:
        return naive_order(on, &on->expressions->orders[node->first], at, 0, 0, depth + 1);
    case GB_NODE_DISTINCT:
        return naive_distinct(on, node, from, NULL, 0, depth + 1);
    }
    return 0;
}

/* Whether the whole text is one of the expression's. */
static inline bool naive_accepts(const gb_expressions *expressions, gb_expression root, const char *text,
                                 unsigned length) {
    naive on = {expressions, text, length};
    return naive_match(&on, root, 0, 0) >> length & 1u;
}

#endif
