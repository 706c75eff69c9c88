/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about expressions, bottom up until nothing changes. What is regular has no rule that uses itself, so
 * its facts are exact once those of its items are, and it can be an operand of an intersection.
 */
#include "base/memory.h"
#include "grammar/compile/compiler.h"
#include "grammar/compile/distinct.h"
#include "grammar/compile/lengths.h"

#include <string.h>

/* What a choice has where one of its items has it. */
#define ALLOWS (GB_FACT_NULLABLE | GB_FACT_PRODUCTIVE | GB_FACT_NONEMPTY)

static gb_facts of_link(const gb_compiler *compiler, uint32_t link) {
    return compiler->facts[compiler->expressions->links[link]];
}

static uint32_t add_saturated(uint32_t a, uint32_t b) {
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static uint32_t multiply_saturated(uint32_t a, uint32_t b) {
    return (uint64_t)a * b > UINT32_MAX ? UINT32_MAX : a * b;
}

/* Those of an item, whose automata are not those of what it stands in. */
static gb_facts of_item(const gb_compiler *compiler, gb_expression item) {
    gb_facts facts = compiler->facts[item];
    facts.dfa = facts.flat_dfa = 0;
    facts.repeat = 0;
    return facts;
}

/* ---- Of each kind ----------------------------------------------------------------------------------------
 */

static gb_facts of_sequence(const gb_compiler *compiler, const gb_expression_node *node) {
    gb_facts facts = {.flags = GB_FACT_NULLABLE | GB_FACT_PRODUCTIVE | GB_FACT_REGULAR};
    uint8_t any = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        gb_facts item = of_link(compiler, node->first + i);
        facts.flags &= item.flags;
        any |= item.flags;
        facts.size = add_saturated(facts.size, item.size);
        facts.regular_depth =
            item.regular_depth > facts.regular_depth ? item.regular_depth : facts.regular_depth;
    }
    if (facts.flags & GB_FACT_PRODUCTIVE)
        facts.flags |= any & GB_FACT_NONEMPTY;
    return facts;
}

static gb_facts of_choice(const gb_compiler *compiler, const gb_expression_node *node) {
    gb_facts facts = of_sequence(compiler, node);
    facts.flags &= GB_FACT_REGULAR;
    for (uint32_t i = 0; i < node->count; i++)
        facts.flags |= of_link(compiler, node->first + i).flags & ALLOWS;
    facts.size = add_saturated(facts.size, 1);
    return facts;
}

static gb_facts of_automaton(const gb_compiler *compiler, const gb_expression_node *node) {
    const uint32_t *links = compiler->expressions->links + node->first, states = links[0];
    gb_facts facts = {.flags = GB_FACT_PRODUCTIVE | GB_FACT_REGULAR, .size = states};
    facts.flags |= links[1] ? GB_FACT_NULLABLE : 0;
    for (uint32_t i = 1 + states; i < node->count; i += GB_MOVE_WORDS)
        facts.flags |= links[i + GB_MOVE_FROM] == 0 ? GB_FACT_NONEMPTY : 0;
    return facts;
}

static gb_facts of_repeat(const gb_compiler *compiler, const gb_expression_node *node) {
    gb_facts facts = of_item(compiler, node->item);
    if (node->first == 0)
        facts.flags |= GB_FACT_NULLABLE | GB_FACT_PRODUCTIVE;
    uint32_t times = node->count == GB_NO_END ? add_saturated(node->first, 1) : node->count;
    facts.size = multiply_saturated(add_saturated(facts.size, 1), times);
    return facts;
}

static gb_facts of_rule(const gb_compiler *compiler, const gb_expression_node *node) {
    const gb_expression item = compiler->expressions->rules[node->first].item;
    gb_facts facts = of_item(compiler, item);
    if (!gb_is_inlined(compiler, item))
        facts.size = 1; /* a call */
    return facts;
}

static bool is_item_productive(const gb_compiler *compiler, const gb_order *order, uint32_t i) {
    return of_link(compiler, order->first + i).flags & GB_FACT_PRODUCTIVE;
}

/* Whether item i may stand, with all items that must then stand as well. */
static bool fits(const gb_compiler *compiler, const gb_order *order, uint32_t i, uint32_t most) {
    uint32_t needed = 0;
    if (order->words == 0)
        return is_item_productive(compiler, order, i) && order->required <= most;
    for (uint32_t k = 0; k < order->count; k++) {
        const bool is_needed = gb_order_implies(compiler->expressions, order, i, k);
        if (is_needed && !is_item_productive(compiler, order, k))
            return false;
        needed += is_needed;
    }
    return needed <= most;
}

static gb_facts of_order(const gb_compiler *compiler, const gb_expression_node *node) {
    const gb_order *order = &compiler->expressions->orders[node->first];
    const bool separates = compiler->facts[order->separator].flags & GB_FACT_PRODUCTIVE;
    const bool rest = compiler->facts[order->rest].flags & GB_FACT_PRODUCTIVE;
    const uint32_t most = separates || order->most == 0 ? order->most : 1;
    uint32_t required = 0, fitting = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        const bool is_fitting = fits(compiler, order, i, most);
        fitting += is_fitting;
        required += is_fitting && i < order->required;
    }
    const bool enough = order->least <= most && required == order->required && required <= most &&
                        (rest || fitting >= order->least);
    gb_facts facts = {0};
    if (enough)
        facts.flags |= GB_FACT_PRODUCTIVE;
    if (enough && most > 0 && (rest || fitting))
        facts.flags |= GB_FACT_NONEMPTY;
    if (order->required == 0 && order->least == 0)
        facts.flags |= GB_FACT_PRODUCTIVE | GB_FACT_NULLABLE;
    return facts;
}

/* How many texts the items of the expression can have; 0 also while they are not known to be regular. */
static uint32_t count_items(gb_compiler *compiler, gb_expression expression, gb_expression item) {
    const gb_dfa *dfa =
        gb_has_fact(compiler, item, GB_FACT_REGULAR) ? gb_flat_product(compiler, expression) : NULL;
    uint32_t *texts = dfa ? gb_count_texts(dfa) : NULL;
    const uint32_t count = texts ? texts[0] : 0;
    if (dfa && !texts)
        gb_compiler_no_memory(compiler);
    gb_free(texts);
    return count;
}

static gb_facts of_distinct(gb_compiler *compiler, gb_expression expression, const gb_expression_node *node) {
    const gb_distinct items = gb_distinct_of(compiler->expressions, node);
    const uint32_t texts = count_items(compiler, expression, node->item);
    const bool separates = gb_has_fact(compiler, items.separator, GB_FACT_PRODUCTIVE);
    const uint32_t most = separates || items.most == 0 ? items.most : 1;
    gb_facts facts = {.flat_dfa = compiler->facts[expression].flat_dfa};
    if (items.least <= most && items.least <= texts && most > 0 && texts > 0)
        facts.flags |= GB_FACT_PRODUCTIVE | GB_FACT_NONEMPTY;
    if (items.least == 0)
        facts.flags |= GB_FACT_PRODUCTIVE | GB_FACT_NULLABLE;
    return facts;
}

/* ---- Intersections and differences -----------------------------------------------------------------------
 */

/* Whether so many units are a text of an automaton. */
static bool has_count(const gb_dfa *dfa, const gb_expression_node *repeat, uint32_t least, uint32_t most) {
    if (dfa->count == 0 || most < least)
        return false;
    if (repeat)
        return gb_has_length(dfa, 0, least > repeat->first ? least : repeat->first,
                             most < repeat->count ? most : repeat->count);
    if (least == 0 && dfa->accepts[0])
        return true;
    bool has_moves = false;
    for (size_t i = 0; i < dfa->class_count; i++)
        has_moves |= dfa->rows[i] != GB_NO_STATE;
    return most > 0 && has_moves;
}

static gb_facts of_product(gb_compiler *compiler, gb_expression expression, const gb_expression_node *node) {
    const gb_facts a = compiler->facts[node->item], b = compiler->facts[node->first];
    if (!(a.flags & b.flags & GB_FACT_REGULAR))
        return (gb_facts){0};
    if (!compiler->facts[expression].dfa)
        gb_make_product(compiler, expression);
    gb_facts facts = compiler->facts[expression];
    if (!facts.dfa)
        return (gb_facts){0};
    const gb_dfa *dfa = &compiler->dfas[facts.dfa - 1];
    const gb_expression_node *repeat = gb_units_of(compiler, expression);
    facts.flags = GB_FACT_REGULAR;
    facts.flags |= has_count(dfa, repeat, 0, 0) ? GB_FACT_NULLABLE : 0;
    facts.flags |= has_count(dfa, repeat, 0, GB_NO_END) ? GB_FACT_PRODUCTIVE : 0;
    facts.flags |= has_count(dfa, repeat, 1, GB_NO_END) ? GB_FACT_NONEMPTY : 0;
    facts.size = (uint32_t)dfa->count;
    facts.regular_depth = a.regular_depth > b.regular_depth ? a.regular_depth : b.regular_depth;
    return facts;
}

/* ---- All -------------------------------------------------------------------------------------------------
 */

static gb_facts facts_of(gb_compiler *compiler, gb_expression expression) {
    const gb_expression_node *node = &compiler->expressions->nodes[expression];
    const uint8_t text = GB_FACT_PRODUCTIVE | GB_FACT_NONEMPTY | GB_FACT_REGULAR;
    switch ((gb_node_kind)node->kind) {
    case GB_NODE_NOTHING:
        return (gb_facts){.flags = GB_FACT_REGULAR};
    case GB_NODE_EMPTY:
        return (gb_facts){.flags = GB_FACT_PRODUCTIVE | GB_FACT_REGULAR | GB_FACT_NULLABLE};
    case GB_NODE_BYTES:
        return (gb_facts){.flags = text, .size = node->count};
    case GB_NODE_BYTE_SET: {
        gb_byte_set none = {{0}};
        bool empty = memcmp(&compiler->expressions->sets[node->first], &none, sizeof none) == 0;
        return (gb_facts){.flags = empty ? GB_FACT_REGULAR : text, .size = 1};
    }
    case GB_NODE_STATES:
        return of_automaton(compiler, node);
    case GB_NODE_SEQUENCE:
        return of_sequence(compiler, node);
    case GB_NODE_CHOICE:
        return of_choice(compiler, node);
    case GB_NODE_REPEAT:
        return of_repeat(compiler, node);
    case GB_NODE_BOTH:
    case GB_NODE_EXCEPT:
        return of_product(compiler, expression, node);
    case GB_NODE_RULE:
        return of_rule(compiler, node);
    case GB_NODE_TOKEN:
        return (gb_facts){.flags = GB_FACT_PRODUCTIVE | GB_FACT_NONEMPTY, .size = 1};
    case GB_NODE_ANY_ORDER:
        return of_order(compiler, node);
    case GB_NODE_DISTINCT:
        return of_distinct(compiler, expression, node);
    }
    return (gb_facts){0};
}

/* Whether the facts of the expression changed. Those of a regular one are final. */
static bool update(gb_compiler *compiler, gb_expression expression) {
    gb_facts *facts = &compiler->facts[expression];
    if (!(facts->flags & GB_FACT_REACHABLE) || facts->flags & GB_FACT_REGULAR)
        return false;
    gb_facts found = facts_of(compiler, expression);
    found.flags |= GB_FACT_REACHABLE;
    found.regular_depth++;
    if (found.regular_depth > GB_MAX_REGULAR_DEPTH)
        found.flags &= (uint8_t)~GB_FACT_REGULAR;
    bool changed = found.flags != facts->flags;
    *facts = found;
    return changed;
}

/* Items that differ must be regular, and none of them empty. */
static void refuse_distinct(gb_compiler *compiler) {
    for (gb_expression i = 1; i < compiler->expressions->node_count; i++) {
        const gb_expression_node *node = &compiler->expressions->nodes[i];
        if (node->kind != GB_NODE_DISTINCT || !gb_has_fact(compiler, i, GB_FACT_REACHABLE))
            continue;
        if (!gb_has_fact(compiler, node->item, GB_FACT_REGULAR))
            gb_compiler_fail(
                compiler, GUMBEL_ERROR_UNSUPPORTED,
                "grammar: items that differ are not regular: a rule that uses itself, a token, or "
                "items in any order or that differ");
        else if (gb_has_fact(compiler, node->item, GB_FACT_NULLABLE))
            gb_compiler_fail(compiler, GUMBEL_ERROR_ARGUMENT,
                             "grammar: an item of those that differ allows the empty text");
    }
}

/* An operand that is not regular; the message names a rule where that is one. */
static void refuse_operands(gb_compiler *compiler) {
    for (gb_expression i = 1; i < compiler->expressions->node_count; i++) {
        const gb_expression_node *node = &compiler->expressions->nodes[i];
        if ((node->kind == GB_NODE_BOTH || node->kind == GB_NODE_EXCEPT) &&
            gb_has_fact(compiler, i, GB_FACT_REACHABLE) && !gb_has_fact(compiler, i, GB_FACT_REGULAR))
            gb_compiler_fail(
                compiler, GUMBEL_ERROR_UNSUPPORTED,
                "grammar: an intersection or difference of what is not regular: a rule that uses "
                "itself, a token, or items in any order or that differ");
    }
}

static void refuse_empty_items(gb_compiler *compiler) {
    for (gb_expression i = 1; i < compiler->expressions->node_count; i++) {
        const gb_expression_node *node = &compiler->expressions->nodes[i];
        if (node->kind != GB_NODE_ANY_ORDER || !gb_has_fact(compiler, i, GB_FACT_REACHABLE))
            continue;
        const gb_order *order = &compiler->expressions->orders[node->first];
        bool nullable = gb_has_fact(compiler, order->rest, GB_FACT_NULLABLE);
        for (uint32_t k = 0; k < order->count; k++)
            nullable |= of_link(compiler, order->first + k).flags & GB_FACT_NULLABLE;
        if (nullable)
            gb_compiler_fail(compiler, GUMBEL_ERROR_ARGUMENT,
                             "grammar: an item of those in any order allows the empty text");
    }
}

void gb_find_facts(gb_compiler *compiler) {
    size_t count = compiler->expressions->node_count;
    bool changed = true;
    while (changed && gb_compiler_works(compiler, count)) {
        changed = false;
        for (gb_expression i = 1; i < count && compiler->error.status == GUMBEL_OK; i++)
            changed |= update(compiler, i);
    }
    refuse_operands(compiler);
    refuse_empty_items(compiler);
    refuse_distinct(compiler);
}
