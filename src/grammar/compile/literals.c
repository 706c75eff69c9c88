/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/compile/literals.h"

#include "base/memory.h"
#include "grammar/compile/words.h"

/* The byte of a set of one; -1 of any other set. */
static int only_byte(const gb_byte_set *set) {
    int only = -1;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (!gb_set_has(set, byte))
            continue;
        if (only >= 0)
            return -1;
        only = (int)byte;
    }
    return only;
}

static bool append_bytes(gb_compiler *compiler, const uint8_t *appended, size_t size, gb_byte_buffer *bytes) {
    if (bytes)
        gb_buffer_append(bytes, appended, size);
    if (bytes && bytes->failed)
        gb_compiler_no_memory(compiler);
    return gb_compiler_works(compiler, size);
}

bool gb_append_literal(gb_compiler *compiler, gb_expression expression, gb_byte_buffer *bytes) {
    const gb_expressions *expressions = compiler->expressions;
    const gb_expression_node *node = &expressions->nodes[expression];
    if (node->kind == GB_NODE_EMPTY)
        return gb_compiler_works(compiler, 1);
    if (node->kind == GB_NODE_BYTES)
        return append_bytes(compiler, expressions->bytes.data + node->first, node->count, bytes);
    if (node->kind == GB_NODE_BYTE_SET) {
        const int only = only_byte(&expressions->sets[node->first]);
        return only >= 0 && append_bytes(compiler, &(uint8_t){(uint8_t)only}, 1, bytes);
    }
    if (node->kind == GB_NODE_RULE && gb_is_inlined(compiler, expressions->rules[node->first].item))
        return gb_append_literal(compiler, expressions->rules[node->first].item, bytes);
    bool is_text = node->kind == GB_NODE_SEQUENCE;
    for (uint32_t i = 0; is_text && i < node->count; i++)
        is_text = gb_append_literal(compiler, expressions->links[node->first + i], bytes);
    return is_text && gb_compiler_works(compiler, 1);
}

void gb_literals_add(gb_literals *literals, gb_compiler *compiler, uint32_t next) {
    if (gb_grow((void **)&literals->items, &literals->capacity, literals->count + 1, sizeof *literals->items))
        literals->items[literals->count++] = (gb_literal){literals->bytes.size, next};
    else
        gb_compiler_no_memory(compiler);
}

uint32_t gb_emit_literals(const gb_literals *literals, gb_compiler *compiler, gb_automaton *automaton) {
    gb_word *words = gb_allocate(literals->count, sizeof *words);
    size_t begin = 0;
    if (!words) {
        gb_compiler_no_memory(compiler);
        return GB_NO_STATE;
    }
    for (size_t i = 0; i < literals->count; i++) {
        const gb_literal *item = &literals->items[i];
        const size_t size = item->end - begin;
        words[i] = (gb_word){size ? literals->bytes.data + begin : NULL, size, item->next};
        begin = item->end;
    }
    const uint32_t start = gb_add_words(compiler, automaton, words, literals->count);
    gb_free(words);
    return start;
}

void gb_literals_free(gb_literals *literals) {
    gb_buffer_free(&literals->bytes);
    gb_free(literals->items);
    *literals = (gb_literals){0};
}
