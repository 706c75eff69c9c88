/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over expressions: what the root reaches, and whether a rule begins with itself.
 */
#include "base/memory.h"
#include "grammar/compile/compiler.h"

gb_expression gb_item_at(const gb_expressions *expressions, gb_expression expression, uint32_t index) {
    const gb_expression_node *node = &expressions->nodes[expression];
    switch ((gb_node_kind)node->kind) {
    case GB_NODE_SEQUENCE:
    case GB_NODE_CHOICE:
        return index < node->count ? expressions->links[node->first + index] : 0;
    case GB_NODE_REPEAT:
        return index == 0 ? node->item : 0;
    case GB_NODE_BOTH:
    case GB_NODE_EXCEPT:
        return index < 2 ? (index ? node->first : node->item) : 0;
    case GB_NODE_RULE:
        return index == 0 ? expressions->rules[node->first].item : 0;
    case GB_NODE_ANY_ORDER: {
        const gb_order *order = &expressions->orders[node->first];
        if (index < order->count)
            return expressions->links[order->first + index];
        return index == order->count ? order->separator : index == order->count + 1 ? order->rest : 0;
    }
    case GB_NODE_DISTINCT:
        return index == 0 ? node->item : index == 1 ? gb_distinct_of(expressions, node).separator : 0;
    case GB_NODE_NOTHING:
    case GB_NODE_EMPTY:
    case GB_NODE_BYTES:
    case GB_NODE_BYTE_SET:
    case GB_NODE_STATES:
    case GB_NODE_TOKEN:
        break;
    }
    return 0;
}

/* ---- What the root reaches -------------------------------------------------------------------------------
 */

static void require_definition(gb_compiler *compiler, gb_expression expression) {
    const gb_expression_node *node = &compiler->expressions->nodes[expression];
    const gb_rule *rule = node->kind == GB_NODE_RULE ? &compiler->expressions->rules[node->first] : NULL;
    if (rule && !rule->item)
        gb_compiler_fail(compiler, GUMBEL_ERROR_ARGUMENT, "grammar: rule '%s' is used and not defined",
                         rule->name);
}

void gb_find_reachable(gb_compiler *compiler, gb_expression root) {
    size_t count = 0;
    gb_expression *pending = gb_allocate(compiler->expressions->node_count, sizeof *pending);
    if (!pending) {
        gb_compiler_no_memory(compiler);
        return;
    }
    compiler->facts[root].flags = GB_FACT_REACHABLE;
    pending[count++] = root;
    while (count) {
        gb_expression expression = pending[--count], item;
        require_definition(compiler, expression);
        for (uint32_t i = 0; (item = gb_item_at(compiler->expressions, expression, i)); i++)
            if (!compiler->facts[item].flags) {
                compiler->facts[item].flags = GB_FACT_REACHABLE;
                pending[count++] = item;
            }
    }
    gb_free(pending);
}

/* ---- Left recursion --------------------------------------------------------------------------------------
 */

/* One expression of a path from the root, each of which the one before it may begin with. */
typedef struct step {
    gb_expression expression;
    uint32_t next; /* its item to look at next */
} step;

enum { NEW, ON_PATH, DONE };

/* The next item that the expression may begin with, or 0. */
static gb_expression next_beginning(const gb_compiler *compiler, step *at) {
    const gb_expression_node *node = &compiler->expressions->nodes[at->expression];
    uint32_t index = at->next++;
    if (node->kind == GB_NODE_BOTH || node->kind == GB_NODE_EXCEPT)
        return 0; /* regular, so no rule in it uses itself */
    if (node->kind == GB_NODE_DISTINCT && index > 0)
        return 0; /* no separator comes first */
    gb_expression item = gb_item_at(compiler->expressions, at->expression, index);
    if (node->kind == GB_NODE_SEQUENCE && item && !gb_has_fact(compiler, item, GB_FACT_NULLABLE))
        at->next = node->count;
    if (node->kind == GB_NODE_ANY_ORDER && index == compiler->expressions->orders[node->first].count)
        return gb_item_at(compiler->expressions, at->expression, at->next++); /* no separator comes first */
    return item;
}

static void fail_at(gb_compiler *compiler, const step *path, size_t length, gb_expression again) {
    size_t first = 0;
    while (path[first].expression != again)
        first++;
    for (size_t i = first; i < length; i++) {
        const gb_expression_node *node = &compiler->expressions->nodes[path[i].expression];
        if (node->kind == GB_NODE_RULE)
            gb_compiler_fail(compiler, GUMBEL_ERROR_ARGUMENT,
                             "grammar: rule '%s' begins with itself (left recursion); write it as a repeat",
                             compiler->expressions->rules[node->first].name);
    }
}

static void search(gb_compiler *compiler, gb_expression root, step *path, uint8_t *marks) {
    size_t length = 0;
    path[length++] = (step){.expression = root};
    marks[root] = ON_PATH;
    while (length && compiler->error.status == GUMBEL_OK) {
        gb_expression item = next_beginning(compiler, &path[length - 1]);
        if (!item) {
            marks[path[--length].expression] = DONE;
        } else if (marks[item] == ON_PATH) {
            fail_at(compiler, path, length, item);
        } else if (marks[item] == NEW) {
            marks[item] = ON_PATH;
            path[length++] = (step){.expression = item};
        }
    }
}

void gb_refuse_left_recursion(gb_compiler *compiler) {
    size_t count = compiler->expressions->node_count;
    step *path = gb_allocate(count, sizeof *path);
    uint8_t *marks = gb_allocate(count, 1);
    if (!path || !marks)
        gb_compiler_no_memory(compiler);
    for (gb_expression i = 1; i < count && compiler->error.status == GUMBEL_OK; i++)
        if (gb_has_fact(compiler, i, GB_FACT_REACHABLE) && marks[i] == NEW)
            search(compiler, i, path, marks);
    gb_free(path);
    gb_free(marks);
}
