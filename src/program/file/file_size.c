/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/file_size.h"

#include "base/memory.h"
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

bool gb_program_file_size(const gb_program *program, gb_file_size *size) {
    bool has_failed = false;
    gb_byte_buffer metadata = {0}, graph = {0};
    *size = (gb_file_size){.bytes = GB_SECTION_ALIGNMENT}; /* header and section table */
    for (uint32_t i = 0; i < program->constant_count; i++)
        size->bytes = align_up(size->bytes, GB_WEIGHT_ALIGNMENT) + program->constants[i].size;
    gb_encode_metadata(&program->metadata, &metadata);
    add_encoded(size, &metadata, &has_failed);
    gb_encode_graph(program, &graph);
    add_encoded(size, &graph, &has_failed);
    add_blob(size, program->tokenizer);
    add_blob(size, program->chat);
    add_blob(size, program->trie);
    return !has_failed;
}
