/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/file_size.h"

#include "base/memory.h"
#include "program/draft_head.h"
#include "program/file/encode.h"

static uint64_t align_up(uint64_t size, uint64_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
}

static void add_section(gb_file_size *size, uint64_t bytes) {
    const uint64_t begin = align_up(size->bytes, GB_SECTION_ALIGNMENT);
    size->padding += begin - size->bytes;
    size->bytes = begin + bytes;
}

static void add_encoded(gb_file_size *size, gb_byte_buffer *buffer, bool *has_failed) {
    *has_failed |= buffer->failed;
    add_section(size, buffer->size);
    gb_free(buffer->data);
}

static void add_blob(gb_file_size *size, gb_blob blob) {
    if (blob.data)
        add_section(size, blob.size);
}

static void add_graph(gb_file_size *size, const gb_program *program, bool *has_failed) {
    gb_byte_buffer metadata = {0}, graph = {0};
    gb_encode_metadata(&program->metadata, &metadata);
    add_encoded(size, &metadata, has_failed);
    gb_encode_graph(program, &graph);
    add_encoded(size, &graph, has_failed);
}

static void add_weights(gb_file_size *size, const gb_program *program) {
    for (uint32_t i = 0; i < gb_file_constant_count(program); i++) {
        const gb_constant *constant = gb_file_constant(program, i);
        if (!constant->same)
            size->bytes = align_up(size->bytes, GB_WEIGHT_ALIGNMENT) + constant->size;
    }
}

bool gb_program_file_size(const gb_program *program, gb_file_size *size) {
    bool has_failed = false;
    *size = (gb_file_size){.bytes = GB_SECTION_ALIGNMENT}; /* header and section table */
    add_weights(size, program);
    add_graph(size, program, &has_failed);
    add_blob(size, program->tokenizer);
    add_blob(size, program->chat);
    add_blob(size, program->trie);
    if (program->head)
        add_graph(size, program->head, &has_failed);
    return !has_failed;
}
