/* SPDX-License-Identifier: Apache-2.0
 *
 * How expressions are stored, for what reads them: the compiler. Nodes stand after the nodes that they are
 * made of; only rules refer forward.
 */
#ifndef GUMBEL_GRAMMAR_NODES_H
#define GUMBEL_GRAMMAR_NODES_H

#include "base/byte_buffer.h"
#include "grammar/expression.h"

typedef enum gb_node_kind {
    GB_NODE_NOTHING,
    GB_NODE_EMPTY,
    GB_NODE_BYTES,     /* bytes[first, first + count) */
    GB_NODE_BYTE_SET,  /* sets[first] */
    GB_NODE_SEQUENCE,  /* links[first, first + count) */
    GB_NODE_CHOICE,    /* links[first, first + count) */
    GB_NODE_STATES,    /* links[first, first + count): an automaton, see below */
    GB_NODE_REPEAT,    /* item, first to count times */
    GB_NODE_BOTH,      /* item and first */
    GB_NODE_EXCEPT,    /* item, not first */
    GB_NODE_RULE,      /* rules[first] */
    GB_NODE_TOKEN,     /* id first; count 1: any other token */
    GB_NODE_ANY_ORDER, /* orders[first] */
    GB_NODE_DISTINCT   /* item, none of its texts twice; links[first, first + 3): a gb_distinct */
} gb_node_kind;

/* The links of an automaton: how many states, 0 or 1 for each, and three words for each move. */
enum { GB_MOVE_FROM, GB_MOVE_TO, GB_MOVE_BYTES /* first, last << 8 */, GB_MOVE_WORDS };

typedef struct gb_expression_node {
    uint16_t kind;  /* gb_node_kind */
    uint16_t depth; /* nodes inside nodes, up to here */
    uint32_t item, first, count;
} gb_expression_node;

typedef struct gb_rule {
    char *name;         /* owned */
    gb_expression node; /* the rule as an expression */
    gb_expression item; /* 0: not defined */
} gb_rule;

typedef struct gb_order {
    uint32_t first, count; /* links[first, first + count): the items */
    uint32_t required;     /* how many of them, which stand first, are required */
    gb_expression separator, rest;
    uint32_t least, most;
    uint32_t implied,
        words; /* links[implied + i * words]: the items that i needs, a bit each; 0 words: none */
} gb_order;

/* As links have it. */
typedef struct gb_distinct {
    uint32_t separator, least, most;
} gb_distinct;

typedef struct gb_byte_set {
    uint32_t words[8];
} gb_byte_set;

static inline bool gb_set_has(const gb_byte_set *set, unsigned byte) {
    return set->words[byte / 32] >> (byte % 32) & 1u;
}
static inline void gb_set_add(gb_byte_set *set, unsigned byte) {
    set->words[byte / 32] |= 1u << (byte % 32);
}

struct gb_expressions {
    gb_expression_node *nodes;
    size_t node_count, node_capacity;
    gb_expression *links;
    size_t link_count, link_capacity;
    gb_byte_set *sets;
    size_t set_count, set_capacity;
    gb_byte_buffer bytes;
    gb_rule *rules;
    size_t rule_count, rule_capacity;
    uint32_t *rule_slots; /* a hash table from a name to its rule + 1; a power of two of slots */
    size_t rule_slot_count;
    gb_order *orders;
    size_t order_count, order_capacity;
    gb_watch *watch;    /* NULL: none */
    gumbel_error error; /* status GUMBEL_OK: none */
};

/* Whether item i of the order can only stand where item k does. */
static inline bool gb_order_implies(const gb_expressions *expressions, const gb_order *order, uint32_t i,
                                    uint32_t k) {
    const uint32_t *rows = expressions->links + order->implied;
    return i == k || (order->words && rows[(size_t)i * order->words + k / 32] >> (k % 32) & 1u);
}

/* Of a GB_NODE_DISTINCT. */
static inline gb_distinct gb_distinct_of(const gb_expressions *expressions, const gb_expression_node *node) {
    const uint32_t *links = expressions->links + node->first;
    return (gb_distinct){.separator = links[0], .least = links[1], .most = links[2]};
}

/* Adds a node whose deepest part is as given. 0 on an error. */
gb_expression gb_add_node(gb_expressions *expressions, gb_expression_node node, unsigned depth);

/* Depth of an item; an item that is none is an error and gives 0. */
unsigned gb_item_depth(gb_expressions *expressions, gb_expression item);

/* The greatest of their depths. */
unsigned gb_greatest_depth(gb_expressions *expressions, const gb_expression *items, size_t count);

/* Appends to links. False, with the error, without memory. */
bool gb_add_links(gb_expressions *expressions, const uint32_t *items, size_t count);

/* Makes running out of memory the error. */
gb_expression gb_expressions_no_memory(gb_expressions *expressions);

#endif
