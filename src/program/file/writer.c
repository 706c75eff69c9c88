/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/writer.h"

#include "base/memory.h"
#include "program/draft_head.h"
#include "program/file/encode.h"
#include "program/file/file_size.h"
#include "program/file/format.h"
#include "program/file/pack_stream.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define XXH_STATIC_LINKING_ONLY /* for a state that is part of the writer */
#include <xxhash.h>

/* Written in whole buffers, the file gets large pages from file systems that have them, so that a program can
 * be mapped quickly right after it was written. */
enum { BUFFER_BYTES = 2 << 20 };
enum { HEAD_BYTES = GB_SECTION_ALIGNMENT }; /* header and section table, written last */
enum { BYTES_TEXT = 24 };

struct gb_writer {
    XXH3_state_t hash; /* of the constant that is being written; 64-byte aligned */
    gb_program *program;
    gb_output_file file;
    uint8_t *buffer;      /* of the file */
    bool *written;        /* of each constant (gb_file_constant): begun */
    gb_constant *current; /* that is being written; NULL: none */
    uint64_t remaining;   /* bytes of it */
    gb_pack_stream packing;
    uint32_t complete; /* constants */
    uint64_t weights_end;
    uint8_t head[HEAD_BYTES];
    uint32_t section_count;
};

/* "18.7 GB" */
static const char *describe_bytes(double bytes, char text[BYTES_TEXT]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    for (; bytes >= 999.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(text, BYTES_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

/* Refuses where the file system of an open file has less than needed bytes free for this user. path is what
 * the message calls the file. A file system that does not tell is taken to have room. Errors: LIMIT, with
 * both numbers. */
static gumbel_status check_disk_space(int descriptor, const char *path, uint64_t needed,
                                      gumbel_error *error) {
    struct statvfs disk;
    char needed_text[BYTES_TEXT], free_text[BYTES_TEXT];
    if (fstatvfs(descriptor, &disk) != 0 || disk.f_blocks == 0)
        return GUMBEL_OK;
    double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    if ((double)needed <= free_bytes)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: it needs %s, and its disk has %s free", path,
                   describe_bytes((double)needed, needed_text), describe_bytes(free_bytes, free_text));
}

static gumbel_status begin_file(gb_writer *writer, const char *path, const gb_input_list *inputs,
                                gumbel_error *error) {
    gb_file_size size;
    writer->file = GB_NO_OUTPUT;
    writer->written = gb_allocate(gb_file_constant_count(writer->program), sizeof(bool));
    writer->buffer = gb_allocate(BUFFER_BYTES, 1);
    if (!writer->written || !writer->buffer || !gb_program_file_size(writer->program, &size))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for writing it", path);
    GB_TRY(gb_output_create(&writer->file, path, inputs, writer->buffer, BUFFER_BYTES, error));
    GB_TRY(check_disk_space(writer->file.descriptor, path, size.bytes, error));
    return gb_output_write(&writer->file, writer->head, HEAD_BYTES, error);
}

gumbel_status gb_writer_create(const char *path, const gb_input_list *inputs, gb_program *program,
                               gb_writer **writer, gumbel_error *error) {
    *writer = NULL;
    gb_writer *made = gb_allocate_aligned(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for writing it", path);
    made->program = program;
    gumbel_status status = begin_file(made, path, inputs, error);
    if (status != GUMBEL_OK)
        gb_writer_abort(made);
    else
        *writer = made;
    return status;
}

void gb_writer_abort(gb_writer *writer) {
    if (!writer)
        return;
    gb_output_close(&writer->file);
    gb_pack_stream_end(&writer->packing);
    gb_free(writer->written);
    gb_free(writer->buffer);
    gb_free(writer);
}

void gb_writer_use_threads(gb_writer *writer, gb_parallel_loop loop, unsigned threads) {
    writer->packing.loop = loop;
    writer->packing.threads = threads;
}

void gb_writer_measure(gb_writer *writer, gb_output_totals *totals) {
    writer->file.totals = totals;
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

static void end_constant(gb_writer *writer) {
    writer->current->checksum = XXH3_64bits_digest(&writer->hash);
    writer->weights_end = writer->file.position;
    writer->current = NULL;
    writer->complete++;
}

/* Whether the constant of that number is yet to be written. */
static bool is_awaited(const gb_writer *writer, uint32_t index) {
    return index < gb_file_constant_count(writer->program) && !writer->written[index] &&
           !gb_file_constant(writer->program, index)->same;
}

gumbel_status gb_writer_begin_constant(gb_writer *writer, uint32_t index, gumbel_error *error) {
    if (!is_awaited(writer, index))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "constant %u: not there or already written", index);
    if (writer->current)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "constant %s: %llu bytes are missing",
                       writer->current->name, (unsigned long long)writer->remaining);
    GB_TRY(gb_output_align(&writer->file, GB_WEIGHT_ALIGNMENT, error));
    gb_constant *constant = gb_file_constant(writer->program, index);
    writer->written[index] = true;
    writer->current = constant;
    writer->remaining = constant->size;
    constant->offset = writer->file.position;
    XXH3_64bits_reset(&writer->hash);
    if (constant->packing.block_rows > 0)
        gb_pack_stream_begin(&writer->packing, constant);
    if (writer->remaining == 0)
        end_constant(writer);
    return GUMBEL_OK;
}

/* Bytes as they are to stand in the file. */
static gumbel_status write_bytes(gb_writer *writer, const void *data, uint64_t size, gumbel_error *error) {
    XXH3_64bits_update(&writer->hash, data, (size_t)size);
    return gb_output_write(&writer->file, data, size, error);
}

static gumbel_status write_packed(gb_writer *writer, const uint8_t *data, uint64_t size,
                                  gumbel_error *error) {
    while (size > 0) {
        const uint8_t *packed;
        uint64_t packed_size;
        GB_TRY(gb_pack_stream_next(&writer->packing, &data, &size, &packed, &packed_size, error));
        GB_TRY(write_bytes(writer, packed, packed_size, error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_writer_write(gb_writer *writer, const void *data, uint64_t size, gumbel_error *error) {
    if (size == 0)
        return GUMBEL_OK;
    if (!writer->current || size > writer->remaining)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%llu bytes that belong to no constant",
                       (unsigned long long)size);
    bool is_packed = writer->current->packing.block_rows > 0;
    GB_TRY(is_packed ? write_packed(writer, data, size, error) : write_bytes(writer, data, size, error));
    writer->remaining -= size;
    if (writer->remaining == 0)
        end_constant(writer);
    return GUMBEL_OK;
}

/* ---- The end ------------------------------------------------------------------------------------------- */

static void add_entry(gb_writer *writer, gb_section_kind kind, uint64_t offset, uint64_t size,
                      uint64_t checksum) {
    uint8_t *entry = writer->head + GB_HEADER_BYTES + writer->section_count++ * GB_ENTRY_BYTES;
    gb_put_u32(entry + GB_ENTRY_KIND, kind);
    gb_put_u32(entry + GB_ENTRY_FLAGS, kind == GB_SECTION_TRIE ? 0 : GB_ENTRY_REQUIRED);
    gb_put_u64(entry + GB_ENTRY_OFFSET, offset);
    gb_put_u64(entry + GB_ENTRY_SIZE, size);
    gb_put_u64(entry + GB_ENTRY_CHECKSUM, checksum);
}

static gumbel_status write_section(gb_writer *writer, gb_section_kind kind, const uint8_t *data,
                                   uint64_t size, gumbel_error *error) {
    GB_TRY(gb_output_align(&writer->file, GB_SECTION_ALIGNMENT, error));
    add_entry(writer, kind, writer->file.position, size, XXH3_64bits(data, (size_t)size));
    return gb_output_write(&writer->file, data, size, error);
}

static gumbel_status write_encoded(gb_writer *writer, gb_section_kind kind, gb_byte_buffer *buffer,
                                   gumbel_error *error) {
    gumbel_status status = buffer->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY,
                                                    "%s: no memory for writing it", writer->file.target.path)
                                          : write_section(writer, kind, buffer->data, buffer->size, error);
    gb_free(buffer->data);
    return status;
}

static gumbel_status write_blob(gb_writer *writer, gb_section_kind kind, gb_blob blob, gumbel_error *error) {
    return blob.data ? write_section(writer, kind, blob.data, blob.size, error) : GUMBEL_OK;
}

/* A program's two sections, of its metadata and of its graph. */
static gumbel_status write_graph(gb_writer *writer, const gb_program *program, gb_section_kind metadata_kind,
                                 gb_section_kind graph_kind, gumbel_error *error) {
    gb_byte_buffer metadata = {0}, graph = {0};
    gb_encode_metadata(&program->metadata, &metadata);
    GB_TRY(write_encoded(writer, metadata_kind, &metadata, error));
    gb_encode_graph(program, &graph);
    return write_encoded(writer, graph_kind, &graph, error);
}

/* Lets what the head shares lie where the program's does. */
static void place_shared(const gb_program *head) {
    for (uint32_t i = 0; i < head->constant_count; i++) {
        gb_constant *constant = &head->constants[i];
        if (!constant->same)
            continue;
        constant->offset = constant->same->offset;
        constant->checksum = constant->same->checksum;
    }
}

static gumbel_status write_head(gb_writer *writer, const gb_program *head, gumbel_error *error) {
    if (!head)
        return GUMBEL_OK;
    place_shared(head);
    return write_graph(writer, head, GB_SECTION_HEAD_METADATA, GB_SECTION_HEAD_GRAPH, error);
}

static gumbel_status write_sections(gb_writer *writer, gumbel_error *error) {
    const gb_program *program = writer->program;
    if (gb_file_constant_count(program) > 0)
        add_entry(writer, GB_SECTION_WEIGHTS, HEAD_BYTES, writer->weights_end - HEAD_BYTES, 0);
    GB_TRY(write_graph(writer, program, GB_SECTION_METADATA, GB_SECTION_GRAPH, error));
    GB_TRY(write_blob(writer, GB_SECTION_TOKENIZER, program->tokenizer, error));
    GB_TRY(write_blob(writer, GB_SECTION_CHAT, program->chat, error));
    GB_TRY(write_blob(writer, GB_SECTION_TRIE, program->trie, error));
    return write_head(writer, program->head, error);
}

/* The header and, in program and its head, the ids. The table is complete. */
static void make_header(gb_writer *writer) {
    uint8_t *head = writer->head;
    XXH128_canonical_t id;
    XXH128_canonicalFromHash(
        &id, XXH3_128bits(head + GB_HEADER_BYTES, (size_t)writer->section_count * GB_ENTRY_BYTES));
    memcpy(writer->program->id, id.digest, sizeof id.digest);
    gb_head_inherit(writer->program);
    memcpy(head + GB_HEADER_MAGIC, GB_MAGIC, GB_MAGIC_BYTES);
    gb_put_u32(head + GB_HEADER_VERSION, GB_FORMAT_VERSION);
    gb_put_u32(head + GB_HEADER_READER_VERSION, GB_FORMAT_VERSION);
    gb_put_u64(head + GB_HEADER_FILE_SIZE, writer->file.position);
    gb_put_u64(head + GB_HEADER_TABLE, GB_HEADER_BYTES);
    gb_put_u32(head + GB_HEADER_SECTIONS, writer->section_count);
    memcpy(head + GB_HEADER_ID, id.digest, sizeof id.digest);
    gb_put_u64(head + GB_HEADER_CHECKSUM, XXH3_64bits(head, GB_HEADER_CHECKSUM));
}

/* Constants that have bytes of their own. */
static uint32_t count_own(const gb_program *program) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < gb_file_constant_count(program); i++)
        count += !gb_file_constant(program, i)->same;
    return count;
}

static gumbel_status finish(gb_writer *writer, gumbel_error *error) {
    const uint32_t expected = count_own(writer->program);
    if (writer->complete != expected)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: %u constants written, the program has %u",
                       writer->file.target.path, writer->complete, expected);
    GB_TRY(write_sections(writer, error));
    make_header(writer);
    return gb_output_commit(&writer->file, writer->head, HEAD_BYTES, error);
}

gumbel_status gb_writer_finish(gb_writer *writer, gumbel_error *error) {
    gumbel_status status = finish(writer, error);
    gb_writer_abort(writer);
    return status;
}
