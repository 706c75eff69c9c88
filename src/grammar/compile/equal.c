/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash-consing: an expression is a list of words, in which its items stand by their numbers.
 */
#include "grammar/compile/equal.h"

#include "base/memory.h"

#include <string.h>

/* Of expressions whose numbers are not found yet. */
enum { NO_NUMBER };

static bool fail(gb_compiler *compiler) {
    gb_compiler_no_memory(compiler);
    return false;
}

/* Room for so many more words, zeroed; NULL after an error. */
static uint32_t *add_words(gb_compiler *compiler, size_t count) {
    gb_equals *equals = &compiler->equals;
    const size_t begin = equals->word_count;
    if (!gb_grow((void **)&equals->words, &equals->word_capacity, begin + count + 1, sizeof *equals->words)) {
        fail(compiler);
        return NULL;
    }
    memset(equals->words + begin, 0, (count + 1) * sizeof *equals->words);
    equals->word_count += count;
    return gb_compiler_works(compiler, count) ? equals->words + begin : NULL;
}

static bool add_content(gb_compiler *compiler, const void *content, size_t size) {
    uint32_t *words = add_words(compiler, (size + sizeof *words - 1) / sizeof *words);
    if (words && size)
        memcpy(words, content, size);
    return words;
}

static uint32_t number_of(gb_compiler *compiler, gb_expression expression);

/* Items have their numbers before any word is added: finding them takes the same words. */
static bool find_items(gb_compiler *compiler, gb_expression expression) {
    gb_expression item;
    if (compiler->expressions->nodes[expression].kind == GB_NODE_RULE)
        return true;
    for (uint32_t i = 0; (item = gb_item_at(compiler->expressions, expression, i)); i++)
        if (number_of(compiler, item) == NO_NUMBER)
            return false;
    return true;
}

static bool add_links(gb_compiler *compiler, const gb_expression_node *node) {
    uint32_t *words = add_words(compiler, node->count);
    for (uint32_t i = 0; i < node->count && words; i++)
        words[i] = compiler->equals.numbers[compiler->expressions->links[node->first + i]];
    return words;
}

/* What the expression is but for its kind and count. */
static bool describe(gb_compiler *compiler, const gb_expression_node *node) {
    const gb_expressions *expressions = compiler->expressions;
    const uint32_t *numbers = compiler->equals.numbers;
    const uint32_t repeat[] = {numbers[node->item], node->first};
    switch ((gb_node_kind)node->kind) {
    case GB_NODE_BYTES:
        return add_content(compiler, expressions->bytes.data + node->first, node->count);
    case GB_NODE_BYTE_SET:
        return add_content(compiler, &expressions->sets[node->first], sizeof *expressions->sets);
    case GB_NODE_SEQUENCE:
    case GB_NODE_CHOICE:
        return add_links(compiler, node);
    case GB_NODE_STATES:
        return add_content(compiler, expressions->links + node->first,
                           node->count * sizeof *expressions->links);
    case GB_NODE_REPEAT:
        return add_content(compiler, repeat, sizeof repeat);
    case GB_NODE_BOTH:
    case GB_NODE_EXCEPT:
        return add_content(compiler, (uint32_t[]){numbers[node->item], numbers[node->first]}, sizeof repeat);
    case GB_NODE_NOTHING:
    case GB_NODE_EMPTY:
    case GB_NODE_RULE:
    case GB_NODE_TOKEN:
    case GB_NODE_ANY_ORDER:
    case GB_NODE_DISTINCT:
        break;
    }
    return add_content(compiler, &node->first, sizeof node->first);
}

/* Its number, which is new where no expression like it has one. */
static bool find_number(gb_compiler *compiler, gb_expression expression) {
    gb_equals *equals = &compiler->equals;
    const gb_expression_node *node = &compiler->expressions->nodes[expression];
    const size_t before = equals->table.count;
    uint32_t number;
    equals->word_count = 0;
    if (!add_content(compiler, (uint32_t[]){node->kind, node->count}, 2 * sizeof number) ||
        !describe(compiler, node))
        return false;
    if (!gb_grow((void **)&equals->firsts, &equals->first_capacity, before + (size_t)1,
                 sizeof *equals->firsts) ||
        !gb_intern(&equals->table, equals->words, equals->word_count, &number))
        return fail(compiler);
    if (number == before)
        equals->firsts[number] = expression;
    equals->numbers[expression] = number + 1;
    return true;
}

/* Its number + 1, or NO_NUMBER after an error. As deep as expressions are nested. */
static uint32_t number_of(gb_compiler *compiler, gb_expression expression) {
    const uint32_t known = compiler->equals.numbers[expression];
    if (known != NO_NUMBER)
        return known;
    if (!find_items(compiler, expression) || !find_number(compiler, expression))
        return NO_NUMBER;
    return compiler->equals.numbers[expression];
}

gb_expression gb_first_alike(gb_compiler *compiler, gb_expression expression) {
    gb_equals *equals = &compiler->equals;
    if (!equals->numbers)
        equals->numbers = gb_allocate(compiler->expressions->node_count, sizeof *equals->numbers);
    if (!equals->numbers) {
        fail(compiler);
        return expression;
    }
    const uint32_t number = number_of(compiler, expression);
    return number == NO_NUMBER ? expression : equals->firsts[number - 1];
}

void gb_equals_free(gb_equals *equals) {
    gb_free(equals->numbers);
    gb_free(equals->firsts);
    gb_free(equals->words);
    gb_intern_free(&equals->table);
    *equals = (gb_equals){0};
}
