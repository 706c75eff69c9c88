/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/program_file.h"

#include "base/memory.h"
#include "program/file/reader.h"
#include "program/file/records.h"
#include "support/programs/quantized_program.h"
#include "support/programs/tiny_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

static program_file read_whole(const char *path) {
    gb_file_map map;
    assert_int_equal(gb_map_file(path, &map, NULL), GUMBEL_OK);
    program_file view = {(uint8_t *)(uintptr_t)map.data, map.size};
    program_file file = copy_program_file(&view, 0);
    gb_unmap_file(&map);
    return file;
}

program_file program_file_of(gb_program *program) {
    static const uint8_t tokenizer[] = "a tokenizer", chat[] = "a chat section";
    static const uint8_t trie[] = "the trie section";
    const char *path = temporary_path("tiny.gumbel");
    program->tokenizer = (gb_blob){tokenizer, sizeof tokenizer};
    program->chat = (gb_blob){chat, sizeof chat};
    program->trie = (gb_blob){trie, sizeof trie};
    gumbel_error error;
    if (tiny_program_write(program, path, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    program_file file = read_whole(path);
    gb_program_destroy(program);
    unlink(path);
    return file;
}

program_file tiny_program_file(bool use_sampling) {
    return program_file_of(tiny_program_build(use_sampling));
}

program_file tiny_recurrent_file(bool use_sampling) {
    return program_file_of(tiny_recurrent_build(use_sampling));
}

program_file tiny_pair_file(void) {
    return program_file_of(tiny_pair_build());
}

program_file packed_program_file(void) {
    return program_file_of(packed_program_build());
}

program_file copy_program_file(const program_file *file, uint64_t extra) {
    program_file copy = {gb_allocate_aligned((size_t)(file->size + extra), 1), file->size};
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, file->bytes, (size_t)file->size);
    return copy;
}

static uint8_t *entry_at(const program_file *file, uint32_t index) {
    return file->bytes + gb_get_u64(file->bytes + GB_HEADER_TABLE) + (size_t)index * GB_ENTRY_BYTES;
}

uint8_t *section_entry(const program_file *file, uint32_t kind) {
    uint32_t count = gb_get_u32(file->bytes + GB_HEADER_SECTIONS);
    for (uint32_t i = 0; i < count; i++) {
        if (gb_get_u32(entry_at(file, i) + GB_ENTRY_KIND) == kind)
            return entry_at(file, i);
    }
    return NULL;
}

void repair_checksums(program_file *file) {
    uint8_t *header = file->bytes;
    uint64_t table = gb_get_u64(header + GB_HEADER_TABLE);
    uint32_t count = gb_get_u32(header + GB_HEADER_SECTIONS);
    if (table > file->size || (uint64_t)count * GB_ENTRY_BYTES > file->size - table)
        return;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *entry = file->bytes + table + (size_t)i * GB_ENTRY_BYTES; /* which may lie on the header */
        uint64_t offset = gb_get_u64(entry + GB_ENTRY_OFFSET), size = gb_get_u64(entry + GB_ENTRY_SIZE);
        if (offset <= file->size && size <= file->size - offset &&
            gb_get_u32(entry + GB_ENTRY_KIND) != GB_SECTION_WEIGHTS)
            gb_put_u64(entry + GB_ENTRY_CHECKSUM, XXH3_64bits(file->bytes + offset, (size_t)size));
    }
    XXH128_canonical_t id;
    XXH128_canonicalFromHash(&id, XXH3_128bits(file->bytes + table, (size_t)count * GB_ENTRY_BYTES));
    memcpy(header + GB_HEADER_ID, id.digest, sizeof id.digest);
    gb_put_u64(header + GB_HEADER_FILE_SIZE, file->size);
    gb_put_u64(header + GB_HEADER_CHECKSUM, XXH3_64bits(header, GB_HEADER_CHECKSUM));
}

void assert_refused(const program_file *file, gumbel_status expected, const char *part) {
    gb_program *program = NULL;
    gumbel_error error = {0};
    gumbel_status status = gb_program_parse("test.gumbel", file->bytes, file->size, &program, &error);
    gb_program_destroy(program);
    if (status != expected || !strstr(error.message, part))
        fail_msg("status %d, message \"%s\"; expected status %d and \"%s\"", (int)status, error.message,
                 (int)expected, part);
    assert_int_equal(strncmp(error.message, "test.gumbel: ", 13), 0);
}
