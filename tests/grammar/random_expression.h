/* SPDX-License-Identifier: Apache-2.0
 *
 * Random expressions over the bytes a, b and c, small enough for naive.h.
 */
#ifndef GUMBEL_TESTS_GRAMMAR_RANDOM_EXPRESSION_H
#define GUMBEL_TESTS_GRAMMAR_RANDOM_EXPRESSION_H

#include "grammar/expression.h"

typedef struct random_state {
    uint64_t value;
} random_state;

static inline uint32_t random_below(random_state *random, uint32_t limit) {
    random->value = random->value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random->value >> 33) % limit;
}

static gb_expression random_expression(gb_expressions *all, random_state *random, unsigned depth,
                                       bool regular);

/* Two states, of which the second accepts and can be reached. */
static inline gb_expression random_automaton(gb_expressions *all, random_state *random) {
    const gb_byte_move moves[] = {
        {0, 1, 'a', 'a'}, {0, random_below(random, 2), 'b', 'c'}, {1, random_below(random, 2), 'a', 'b'}};
    const bool accepts[] = {random_below(random, 2), true};
    return gb_express_automaton(all, moves, 3, accepts, 2);
}

static inline gb_expression random_leaf(gb_expressions *all, random_state *random) {
    static const char *const texts[] = {"a", "b", "c", "ab", "ba", "abc", "cc"};
    switch (random_below(random, 7)) {
    case 0:
        return gb_express_empty(all);
    case 2:
        return random_automaton(all, random);
    case 1: {
        uint32_t set[8] = {0};
        set['a' / 32] = (1 + random_below(random, 7)) << ('a' % 32);
        return gb_express_byte_set(all, set);
    }
    default: {
        const char *text = texts[random_below(random, 7)];
        return gb_express_bytes(all, text, text[1] ? (text[2] ? 3 : 2) : 1);
    }
    }
}

static inline gb_expression random_list(gb_expressions *all, random_state *random, unsigned depth,
                                        bool regular, bool sequence) {
    gb_expression items[3];
    uint32_t count = 2 + random_below(random, 2);
    for (uint32_t i = 0; i < count; i++)
        items[i] = random_expression(all, random, depth - 1, regular);
    return sequence ? gb_express_sequence(all, items, count) : gb_express_choice(all, items, count);
}

static inline gb_expression random_repeat(gb_expressions *all, random_state *random, unsigned depth,
                                          bool regular) {
    uint32_t least = random_below(random, 3), most = least + random_below(random, 3);
    if (random_below(random, 3) == 0)
        most = random_below(random, 2) ? GB_NO_END : 80;
    return gb_express_repeat(all, random_expression(all, random, depth - 1, regular), least, most);
}

/* Items behind a letter each, so that none is empty. */
static inline gb_expression random_order(gb_expressions *all, random_state *random, unsigned depth) {
    gb_any_order_item items[3];
    gb_any_order order = {.items = items, .count = random_below(random, 4), .most = GB_NO_END};
    for (size_t i = 0; i < order.count; i++) {
        gb_expression pair[] = {gb_express_bytes(all, &"abc"[i], 1),
                                random_expression(all, random, depth - 1, false)};
        items[i] = (gb_any_order_item){gb_express_sequence(all, pair, 2), random_below(random, 2) == 0};
    }
    if (random_below(random, 2))
        order.separator = gb_express_bytes(all, "c", 1);
    if (random_below(random, 2))
        order.rest = gb_express_bytes(all, "bb", 2);
    order.least = random_below(random, 3);
    if (random_below(random, 2))
        order.most = order.least + random_below(random, 3);
    gb_implication implications[3];
    for (uint32_t i = 0; order.count > 1 && i < random_below(random, 4); i++)
        implications[order.implication_count++] = (gb_implication){
            random_below(random, (uint32_t)order.count), random_below(random, (uint32_t)order.count)};
    order.implications = implications;
    if (order.implication_count && order.least > 1)
        order.most = GB_NO_END;
    return gb_express_any_order(all, &order);
}

/* Items that differ, behind a letter, so that none is empty. */
static inline gb_expression random_distinct(gb_expressions *all, random_state *random, unsigned depth) {
    const gb_expression pair[] = {gb_express_bytes(all, &"ab"[random_below(random, 2)], 1),
                                  random_expression(all, random, depth - 1, true)};
    const gb_expression separator = random_below(random, 2) ? gb_express_bytes(all, "c", 1) : 0;
    const uint32_t least = random_below(random, 4), most = least + random_below(random, 3);
    return gb_express_distinct(all, gb_express_sequence(all, pair, 2), separator, least,
                               random_below(random, 2) ? most : GB_NO_END);
}

static gb_expression random_expression(gb_expressions *all, random_state *random, unsigned depth,
                                       bool regular) {
    if (depth == 0)
        return random_leaf(all, random);
    switch (random_below(random, regular ? 9 : 13)) {
    case 0:
        return random_leaf(all, random);
    case 1:
    case 2:
    case 3:
        return random_list(all, random, depth, regular, true);
    case 4:
    case 5:
        return random_list(all, random, depth, regular, false);
    case 6:
        return random_repeat(all, random, depth, regular);
    case 7:
        return gb_express_both(all, random_expression(all, random, depth - 1, true),
                               random_expression(all, random, depth - 1, true));
    case 8:
        return gb_express_except(all, random_expression(all, random, depth - 1, true),
                                 random_expression(all, random, depth - 1, true));
    case 9:
        return random_order(all, random, depth);
    case 10:
        return random_distinct(all, random, depth);
    default: {
        /* A letter before the rule, so that no rule begins with itself. */
        static const char *const names[] = {"x", "y"};
        gb_expression pair[] = {gb_express_bytes(all, &"ab"[random_below(random, 2)], 1),
                                gb_express_rule(all, names[random_below(random, 2)])};
        return gb_express_sequence(all, pair, 2);
    }
    }
}

/* A root, and rules x and y. */
static inline gb_expression random_grammar(gb_expressions *all, random_state *random) {
    gb_define_rule(all, gb_express_rule(all, "x"), random_expression(all, random, 2, false));
    gb_define_rule(all, gb_express_rule(all, "y"), random_expression(all, random, 2, false));
    return random_expression(all, random, 3, false);
}

#endif
