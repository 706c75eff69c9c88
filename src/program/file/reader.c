/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/reader.h"

#include "base/memory.h"
#include "program/draft_head.h"
#include "program/file/encode.h"
#include "program/file/format.h"
#include "program/file/storage.h"
#include "program/verify/verifier.h"

#include <string.h>
#include <xxhash.h>

typedef struct section {
    uint32_t kind, flags;
    uint64_t offset, size, checksum;
} section;

/* The file and what its table says. */
typedef struct file_view {
    const uint8_t *data;
    uint64_t size;
    uint64_t table;
    uint32_t section_count;
    section known[GB_SECTION_LIMIT]; /* by kind; offset 0: absent */
} file_view;

/* The largest section that is read into memory; weights are not. */
#define MAX_STRUCTURAL_BYTES (UINT64_C(1) << 30)

static const char *section_name(uint32_t kind) {
    static const char *const names[GB_SECTION_LIMIT] = {
        "", "metadata", "graph", "weights", "tokenizer", "chat", "trie", "head metadata", "head graph"};
    return kind < GB_SECTION_LIMIT ? names[kind] : "unknown";
}

/* ---- The header (rules F1-F5) -------------------------------------------------------------------------- */

static gumbel_status check_versions(const uint8_t *header, gumbel_error *error) {
    if (memcmp(header + GB_HEADER_MAGIC, GB_MAGIC, GB_MAGIC_BYTES) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "not a gumbel program");
    uint32_t needed = gb_get_u32(header + GB_HEADER_READER_VERSION);
    if (needed > GB_FORMAT_VERSION)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "needs a reader of format version %u, this one reads up to %d", needed,
                       (int)GB_FORMAT_VERSION);
    uint32_t written = gb_get_u32(header + GB_HEADER_VERSION);
    if (written < GB_OLDEST_FORMAT_VERSION)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "was exported by an earlier version of gumbel (format version %u, this one reads %d); "
                       "export it again",
                       written, (int)GB_OLDEST_FORMAT_VERSION);
    return GUMBEL_OK;
}

static gumbel_status read_header(file_view *file, gumbel_error *error) {
    const uint8_t *header = file->data;
    if (file->size < GB_HEADER_BYTES)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%llu bytes, too short for a gumbel program",
                       (unsigned long long)file->size);
    GB_TRY(check_versions(header, error));
    if (gb_get_u64(header + GB_HEADER_CHECKSUM) != XXH3_64bits(header, GB_HEADER_CHECKSUM))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the header's checksum does not match");
    uint64_t declared = gb_get_u64(header + GB_HEADER_FILE_SIZE);
    if (declared != file->size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%llu bytes, its header says %llu: %s",
                       (unsigned long long)file->size, (unsigned long long)declared,
                       file->size < declared ? "truncated" : "something was added");
    file->table = gb_get_u64(header + GB_HEADER_TABLE);
    file->section_count = gb_get_u32(header + GB_HEADER_SECTIONS);
    if (file->section_count > GB_MAX_SECTIONS || file->table < GB_HEADER_BYTES || file->table > file->size ||
        (uint64_t)file->section_count * GB_ENTRY_BYTES > file->size - file->table)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "a table of %u sections at byte %llu is not possible",
                       file->section_count, (unsigned long long)file->table);
    return GUMBEL_OK;
}

/* The id is the table's hash, so that it names every checksum in it. */
static gumbel_status read_id(const file_view *file, uint8_t id[16], gumbel_error *error) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(
        &canonical, XXH3_128bits(file->data + file->table, (size_t)file->section_count * GB_ENTRY_BYTES));
    if (memcmp(canonical.digest, file->data + GB_HEADER_ID, sizeof canonical.digest) != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the section table's checksum does not match");
    memcpy(id, canonical.digest, sizeof canonical.digest);
    return GUMBEL_OK;
}

/* ---- The section table (rules F6-F9, F12) -------------------------------------------------------------- */

static section read_entry(const file_view *file, uint32_t index) {
    const uint8_t *entry = file->data + file->table + (uint64_t)index * GB_ENTRY_BYTES;
    return (section){.kind = gb_get_u32(entry + GB_ENTRY_KIND),
                     .flags = gb_get_u32(entry + GB_ENTRY_FLAGS),
                     .offset = gb_get_u64(entry + GB_ENTRY_OFFSET),
                     .size = gb_get_u64(entry + GB_ENTRY_SIZE),
                     .checksum = gb_get_u64(entry + GB_ENTRY_CHECKSUM)};
}

static bool overlap(uint64_t offset, uint64_t size, uint64_t other_offset, uint64_t other_size) {
    return offset < other_offset + other_size && other_offset < offset + size;
}

static gumbel_status check_place(const file_view *file, uint32_t index, gumbel_error *error) {
    section this = read_entry(file, index);
    if (this.offset % GB_SECTION_ALIGNMENT != 0 || this.offset < GB_SECTION_ALIGNMENT ||
        this.offset > file->size || this.size > file->size - this.offset)
        return gb_fail(
            error, GUMBEL_ERROR_FORMAT, "section %u (%s): %llu bytes at byte %llu do not fit the file", index,
            section_name(this.kind), (unsigned long long)this.size, (unsigned long long)this.offset);
    if (overlap(this.offset, this.size, file->table, (uint64_t)file->section_count * GB_ENTRY_BYTES))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "section %u (%s) overlaps the section table", index,
                       section_name(this.kind));
    for (uint32_t i = 0; i < index; i++) {
        section other = read_entry(file, i);
        if (overlap(this.offset, this.size, other.offset, other.size))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "section %u (%s) overlaps section %u (%s)", index,
                           section_name(this.kind), i, section_name(other.kind));
    }
    return GUMBEL_OK;
}

static gumbel_status check_checksum(const file_view *file, const section *this, gumbel_error *error) {
    if (this->kind == GB_SECTION_WEIGHTS)
        return GUMBEL_OK;
    if (this->size > MAX_STRUCTURAL_BYTES)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the section %s has %llu bytes, expected at most 2^30",
                       section_name(this->kind), (unsigned long long)this->size);
    if (XXH3_64bits(file->data + this->offset, (size_t)this->size) != this->checksum)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the checksum of the section %s does not match",
                       section_name(this->kind));
    return GUMBEL_OK;
}

static bool has_section(const file_view *file, uint32_t kind) {
    return file->known[kind].offset != 0;
}

/* Rule F12. */
static gumbel_status check_head(const file_view *file, gumbel_error *error) {
    const bool has_metadata = has_section(file, GB_SECTION_HEAD_METADATA);
    if (has_metadata == has_section(file, GB_SECTION_HEAD_GRAPH))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "has no section %s",
                   section_name(has_metadata ? GB_SECTION_HEAD_GRAPH : GB_SECTION_HEAD_METADATA));
}

static gumbel_status read_table(file_view *file, gumbel_error *error) {
    for (uint32_t i = 0; i < file->section_count; i++) {
        section this = read_entry(file, i);
        GB_TRY(check_place(file, i, error));
        if (this.kind == 0 || this.kind >= GB_SECTION_LIMIT) {
            if (this.flags & GB_ENTRY_REQUIRED)
                return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                               "has a section of kind %u, which is not known to this version", this.kind);
            continue;
        }
        if (has_section(file, this.kind))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "two sections %s", section_name(this.kind));
        GB_TRY(check_checksum(file, &this, error));
        file->known[this.kind] = this;
    }
    for (uint32_t kind = GB_SECTION_METADATA; kind <= GB_SECTION_GRAPH; kind++) {
        if (!has_section(file, kind))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "has no section %s", section_name(kind));
    }
    return check_head(file, error);
}

/* ---- Weights (rules F10, F11, F13) --------------------------------------------------------------------- */

static gumbel_status place_constants(const file_view *file, gb_program *program, gumbel_error *error) {
    const section *weights = &file->known[GB_SECTION_WEIGHTS];
    for (uint32_t i = 0; i < program->constant_count; i++) {
        gb_constant *constant = &program->constants[i];
        uint64_t offset = constant->offset;
        if (offset % GB_WEIGHT_ALIGNMENT != 0 || offset < weights->offset || weights->offset == 0 ||
            offset - weights->offset > weights->size ||
            constant->size > weights->size - (offset - weights->offset))
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "constant %s: %llu bytes at byte %llu do not fit the section weights",
                           constant->name, (unsigned long long)constant->size, (unsigned long long)offset);
        constant->data = file->data + offset;
    }
    return GUMBEL_OK;
}

/* Rule F13. Of a verified program. */
static gumbel_status check_shared(const gb_program *head, gumbel_error *error) {
    for (uint32_t i = 0; head && i < head->constant_count; i++) {
        const gb_constant *constant = &head->constants[i], *same = constant->same;
        if (same && (same->offset != constant->offset || same->checksum != constant->checksum))
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "draft head: constant %s is the program's, but lies elsewhere", constant->name);
    }
    return GUMBEL_OK;
}

gumbel_status gb_check_weights(const gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < gb_file_constant_count(program); i++) {
        const gb_constant *constant = gb_file_constant(program, i);
        if (constant->data && !constant->same &&
            XXH3_64bits(constant->data, (size_t)constant->size) != constant->checksum)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "the checksum of the constant %s does not match",
                           constant->name);
    }
    return GUMBEL_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static gb_byte_view view_of(const file_view *file, gb_section_kind kind) {
    return (gb_byte_view){.data = file->data + file->known[kind].offset, .size = file->known[kind].size};
}

static gb_blob blob_of(const file_view *file, gb_section_kind kind) {
    gb_byte_view view = view_of(file, kind);
    return has_section(file, kind) ? (gb_blob){view.data, view.size} : (gb_blob){0};
}

/* A program with nothing in it yet, or NULL. */
static gb_program *create_program(void) {
    gb_program *made = gb_allocate(1, sizeof *made);
    if (made)
        made->storage = gb_storage_create();
    if (made && made->storage)
        return made;
    gb_program_destroy(made);
    return NULL;
}

static gumbel_status decode(const file_view *file, gb_section_kind metadata, gb_section_kind graph,
                            gb_program *program, gumbel_error *error) {
    GB_TRY(gb_decode_metadata(view_of(file, metadata), program, error));
    GB_TRY(gb_decode_graph(view_of(file, graph), program, error));
    return place_constants(file, program, error);
}

static gumbel_status read_head(const file_view *file, gb_program *program, gumbel_error *error) {
    if (!has_section(file, GB_SECTION_HEAD_GRAPH))
        return GUMBEL_OK;
    program->head = create_program();
    if (!program->head)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the draft head");
    const gumbel_status status =
        decode(file, GB_SECTION_HEAD_METADATA, GB_SECTION_HEAD_GRAPH, program->head, error);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "draft head");
}

static gumbel_status read_program(const uint8_t *data, uint64_t size, gb_program *program,
                                  gumbel_error *error) {
    file_view file = {.data = data, .size = size};
    GB_TRY(read_header(&file, error));
    GB_TRY(read_id(&file, program->id, error));
    GB_TRY(read_table(&file, error));
    GB_TRY(decode(&file, GB_SECTION_METADATA, GB_SECTION_GRAPH, program, error));
    GB_TRY(read_head(&file, program, error));
    program->tokenizer = blob_of(&file, GB_SECTION_TOKENIZER);
    program->chat = blob_of(&file, GB_SECTION_CHAT);
    program->trie = blob_of(&file, GB_SECTION_TRIE);
    gb_head_inherit(program);
    GB_TRY(gb_program_verify(program, error));
    GB_TRY(gb_share_constants(program, error));
    return check_shared(program->head, error);
}

gumbel_status gb_program_parse(const char *name, const uint8_t *data, uint64_t size, gb_program **program,
                               gumbel_error *error) {
    *program = NULL;
    if ((uintptr_t)data % GB_WEIGHT_ALIGNMENT != 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: not at a multiple of %d bytes in memory", name,
                       (int)GB_WEIGHT_ALIGNMENT);
    gb_program *made = create_program();
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for the program", name);
    gumbel_status status = read_program(data, size, made, error);
    if (status != GUMBEL_OK) {
        gb_program_destroy(made);
        return gb_prefix(error, status, "%s", name);
    }
    *program = made;
    return GUMBEL_OK;
}

gumbel_status gb_program_read(const char *path, gb_program **program, gumbel_error *error) {
    gb_file_map map;
    *program = NULL;
    GB_TRY(gb_map_file(path, &map, error));
    gumbel_status status = gb_program_parse(path, map.data, map.size, program, error);
    if (status != GUMBEL_OK)
        gb_unmap_file(&map);
    else
        (*program)->map = map;
    return status;
}
