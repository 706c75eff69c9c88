/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules by name: a hash table of their indices.
 */
#include "base/memory.h"
#include "grammar/nodes.h"

#include <string.h>

static size_t hash_of(const char *name) {
    size_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 ^ (uint8_t)*name;
    return hash;
}

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t *slot_of(const gb_expressions *expressions, const char *name) {
    size_t mask = expressions->rule_slot_count - 1;
    for (size_t at = hash_of(name) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &expressions->rule_slots[at];
        if (!*slot || strcmp(expressions->rules[*slot - 1].name, name) == 0)
            return slot;
    }
}

/* Keeps the table at most half full. */
static bool grow_slots(gb_expressions *expressions) {
    if (expressions->rule_count * 2 < expressions->rule_slot_count)
        return true;
    size_t count = expressions->rule_slot_count ? expressions->rule_slot_count * 2 : 64;
    uint32_t *slots = gb_allocate(count, sizeof *slots);
    if (!slots)
        return false;
    gb_free(expressions->rule_slots);
    expressions->rule_slots = slots;
    expressions->rule_slot_count = count;
    for (size_t i = 0; i < expressions->rule_count; i++)
        *slot_of(expressions, expressions->rules[i].name) = (uint32_t)i + 1;
    return true;
}

static gb_expression add_rule(gb_expressions *expressions, const char *name) {
    size_t index = expressions->rule_count;
    if (!gb_grow((void **)&expressions->rules, &expressions->rule_capacity, index + 1,
                 sizeof *expressions->rules))
        return gb_expressions_no_memory(expressions);
    gb_expression node =
        gb_add_node(expressions, (gb_expression_node){.kind = GB_NODE_RULE, .first = (uint32_t)index}, 0);
    char *copy = node ? gb_copy_string(name, strlen(name)) : NULL;
    if (!copy)
        return gb_expressions_no_memory(expressions);
    expressions->rules[index] = (gb_rule){.name = copy, .node = node};
    *slot_of(expressions, name) = (uint32_t)++expressions->rule_count;
    return node;
}

gb_expression gb_express_rule(gb_expressions *expressions, const char *name) {
    if (expressions->error.status != GUMBEL_OK)
        return 0;
    if (!grow_slots(expressions))
        return gb_expressions_no_memory(expressions);
    uint32_t found = *slot_of(expressions, name);
    return found ? expressions->rules[found - 1].node : add_rule(expressions, name);
}

static gb_rule *rule_of(const gb_expressions *expressions, gb_expression rule) {
    const gb_expression_node *node = rule < expressions->node_count ? &expressions->nodes[rule] : NULL;
    return node && node->kind == GB_NODE_RULE ? &expressions->rules[node->first] : NULL;
}

size_t gb_rule_count(const gb_expressions *expressions) {
    return expressions->rule_count;
}

bool gb_rule_is_defined(const gb_expressions *expressions, gb_expression rule) {
    const gb_rule *found = rule_of(expressions, rule);
    return found && found->item;
}

void gb_define_rule(gb_expressions *expressions, gb_expression rule, gb_expression item) {
    gb_rule *found = rule_of(expressions, rule);
    if (expressions->error.status != GUMBEL_OK)
        return;
    if (!found)
        gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT, "grammar: expression %u is no rule", rule);
    else if (found->item)
        gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT, "grammar: rule '%s' is defined twice",
                            found->name);
    else if (gb_item_depth(expressions, item))
        found->item = item;
}
