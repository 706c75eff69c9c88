/* SPDX-License-Identifier: Apache-2.0 */
#include "program/draft_head.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int compare_names(const void *a, const void *b) {
    const gb_constant *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static bool is_same(const gb_constant *a, const gb_constant *b) {
    return gb_type_equal(&a->type, &b->type) && gb_format_equal(&a->format, &b->format) &&
           gb_packing_equal(&a->packing, &b->packing);
}

static const gb_constant *find_same(const gb_constant **sorted, size_t count, const gb_constant *constant) {
    const gb_constant **found = bsearch(&constant, sorted, count, sizeof *sorted, compare_names);
    return found && is_same(*found, constant) ? *found : NULL;
}

/* Names are sorted, since a file may have a million of them. */
gumbel_status gb_share_constants(gb_program *program, gumbel_error *error) {
    const gb_program *head = program->head;
    const size_t count = program->constant_count;
    if (!head || head->constant_count == 0)
        return GUMBEL_OK;
    const gb_constant **sorted = gb_allocate(count + 1, sizeof *sorted);
    if (!sorted)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the names of weights");
    for (size_t i = 0; i < count; i++)
        sorted[i] = &program->constants[i];
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (uint32_t i = 0; i < head->constant_count; i++)
        head->constants[i].same = find_same(sorted, count, &head->constants[i]);
    gb_free(sorted);
    return GUMBEL_OK;
}

static bool have_equal_rows(const gb_state *a, const gb_state *b) {
    return a->type.dtype == b->type.dtype && a->type.shape.dims[2] == b->type.shape.dims[2];
}

static bool are_alike(const gb_state *a, const gb_state *b) {
    return strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->window == b->window &&
           gb_type_equal(&a->type, &b->type);
}

uint32_t gb_state_of_program(const gb_program *program, const gb_program *head, uint32_t state) {
    const uint32_t kept = gb_hidden_state(program);
    if (state == gb_hidden_state(head))
        return kept != UINT32_MAX && have_equal_rows(&program->states[kept], &head->states[state])
                   ? kept
                   : UINT32_MAX;
    for (uint32_t i = 0; i < program->state_count && gb_attends_to_program(head); i++)
        if (are_alike(&program->states[i], &head->states[state]))
            return i;
    return UINT32_MAX;
}

uint32_t gb_file_constant_count(const gb_program *program) {
    return program->constant_count + (program->head ? program->head->constant_count : 0);
}

gb_constant *gb_file_constant(const gb_program *program, uint32_t index) {
    const uint32_t own = program->constant_count;
    return index < own ? &program->constants[index] : &program->head->constants[index - own];
}

uint64_t gb_head_own_bytes(const gb_program *program) {
    const gb_program *head = program->head;
    uint64_t bytes = 0;
    for (uint32_t i = 0; head && i < head->constant_count; i++)
        bytes += head->constants[i].same ? 0 : head->constants[i].size;
    return bytes;
}

void gb_head_inherit(gb_program *program) {
    static const char word[] = "draft head";
    gb_program *head = program->head;
    uint8_t text[sizeof program->id + sizeof word];
    if (!head)
        return;
    head->tokenizer = program->tokenizer;
    head->chat = program->chat;
    head->trie = program->trie;
    memcpy(text, program->id, sizeof program->id);
    memcpy(text + sizeof program->id, word, sizeof word);
    XXH128_canonical_t id;
    XXH128_canonicalFromHash(&id, XXH3_128bits(text, sizeof text));
    memcpy(head->id, id.digest, sizeof head->id);
}
