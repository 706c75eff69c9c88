/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged files: cut at any length, with any bit flipped (with and without checksums that fit again), with
 * records of impossible lengths. Each must be refused or be a valid program; run with the sanitizers to see
 * that nothing is read out of bounds.
 */
#include "base/memory.h"
#include "program/file/encode.h"
#include "program/file/reader.h"
#include "program/file/records.h"
#include "program/file/storage.h"
#include "program/verify/verifier.h"
#include "support/programs/program_file.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static program_file valid;

static int make_valid(void **state) {
    (void)state;
    valid = tiny_program_file(true);
    return 0;
}

static int make_recurrent(void **state) {
    (void)state;
    valid = tiny_recurrent_file(false);
    return 0;
}

static int make_packed(void **state) {
    (void)state;
    valid = packed_program_file();
    return 0;
}

static int make_pair(void **state) {
    (void)state;
    valid = tiny_pair_file();
    return 0;
}

static int free_valid(void **state) {
    (void)state;
    gb_free(valid.bytes);
    return 0;
}

/* Reads the file. What is accepted has been verified; what is refused has one line about it. */
static gumbel_status parse(const program_file *file) {
    gb_program *program = NULL;
    gumbel_error error = {0};
    gumbel_status status = gb_program_parse("test", file->bytes, file->size, &program, &error);
    if (status == GUMBEL_OK) {
        assert_int_equal(gb_program_verify(program, &error), GUMBEL_OK);
    } else {
        assert_null(program);
        assert_true(strlen(error.message) > 6);
        assert_null(strchr(error.message, '\n'));
    }
    gb_program_destroy(program);
    return status;
}

static void files_cut_short_are_refused(void **state) {
    (void)state;
    for (uint64_t size = 0; size < valid.size; size += size < 300 || size + 300 > valid.size ? 1 : 97) {
        program_file cut = {gb_allocate_aligned((size_t)size, 1), size}; /* so that reading past it is seen */
        memcpy(cut.bytes, valid.bytes, (size_t)size);
        assert_int_equal(parse(&cut), GUMBEL_ERROR_FORMAT);
        if (size >= GB_HEADER_BYTES) {
            repair_checksums(&cut);
            assert_int_not_equal(parse(&cut), GUMBEL_OK);
        }
        gb_free(cut.bytes);
    }
}

/* From one damage to the next; no divisor of a byte's bits. */
static uint64_t step(void) {
    return is_short_run() ? 7 : 1;
}

/* The bytes of the header and table, or of a section. */
static void flip_range(uint64_t offset, uint64_t size) {
    program_file file = copy_program_file(&valid, 0);
    for (uint64_t bit = 0; bit < 8 * size; bit += step()) {
        uint64_t at = offset + bit / 8;
        file.bytes[at] ^= (uint8_t)(1u << bit % 8);
        if (at < GB_HEADER_VERSION || at >= GB_HEADER_BYTES || at >= GB_HEADER_VERSION + 8)
            assert_int_not_equal(parse(&file), GUMBEL_OK);
        memcpy(file.bytes, valid.bytes, (size_t)file.size);
    }
    gb_free(file.bytes);
}

static void section_range(uint32_t kind, uint64_t *offset, uint64_t *size) {
    *offset = gb_get_u64(section_entry(&valid, kind) + GB_ENTRY_OFFSET);
    *size = gb_get_u64(section_entry(&valid, kind) + GB_ENTRY_SIZE);
}

static bool has_section(uint32_t kind) {
    return section_entry(&valid, kind) != NULL;
}

static void a_flipped_bit_is_found(void **state) {
    (void)state;
    uint64_t offset, size;
    flip_range(0, GB_HEADER_BYTES + gb_get_u32(valid.bytes + GB_HEADER_SECTIONS) * GB_ENTRY_BYTES);
    for (uint32_t kind = GB_SECTION_METADATA; kind < GB_SECTION_LIMIT; kind++) {
        if (kind == GB_SECTION_WEIGHTS || !has_section(kind))
            continue;
        section_range(kind, &offset, &size);
        flip_range(offset, size);
    }
}

/* Flips each bit of a range with checksums that fit again; returns how many programs were still valid. */
static uint64_t flip_and_repair(uint64_t offset, uint64_t size) {
    uint64_t accepted = 0;
    program_file file = copy_program_file(&valid, 0);
    for (uint64_t bit = 0; bit < 8 * size; bit += step()) {
        file.bytes[offset + bit / 8] ^= (uint8_t)(1u << bit % 8);
        repair_checksums(&file);
        accepted += parse(&file) == GUMBEL_OK;
        memcpy(file.bytes, valid.bytes, (size_t)file.size);
    }
    gb_free(file.bytes);
    return accepted;
}

static void damage_sections(uint32_t metadata, uint32_t graph) {
    uint64_t offset, size;
    section_range(metadata, &offset, &size);
    flip_and_repair(offset, size);
    section_range(graph, &offset, &size);
    uint64_t accepted = flip_and_repair(offset, size);
    assert_true(accepted < 8 * size / 3); /* names, scales, checksums of weights and flags may change */
}

static void repaired_damage_is_survived(void **state) {
    (void)state;
    flip_and_repair(0, GB_HEADER_BYTES + gb_get_u32(valid.bytes + GB_HEADER_SECTIONS) * GB_ENTRY_BYTES);
    if (has_section(GB_SECTION_HEAD_GRAPH))
        damage_sections(GB_SECTION_HEAD_METADATA, GB_SECTION_HEAD_GRAPH);
    else
        damage_sections(GB_SECTION_METADATA, GB_SECTION_GRAPH);
}

/* Puts arbitrary 32-bit numbers at arbitrary places of the graph, or of its draft head. */
static void repaired_numbers_are_survived(void **state) {
    (void)state;
    static const uint32_t numbers[] = {0,          1,          2,           7,           0x7fffffff,
                                       0x80000000, 0xffffffff, 0xfffffff8u, 0x00010000u, 64};
    uint64_t offset, size;
    section_range(has_section(GB_SECTION_HEAD_GRAPH) ? GB_SECTION_HEAD_GRAPH : GB_SECTION_GRAPH, &offset,
                  &size);
    program_file file = copy_program_file(&valid, 0);
    for (uint64_t at = 0; at + 4 <= size; at += 4 * step()) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            gb_put_u32(file.bytes + offset + at, numbers[i]);
            repair_checksums(&file);
            parse(&file);
        }
        memcpy(file.bytes, valid.bytes, (size_t)file.size);
    }
    gb_free(file.bytes);
}

/* ---- Records ------------------------------------------------------------------------------------------- */

/* Decodes a buffer as a graph, or as metadata. */
static gumbel_status decode(const gb_byte_buffer *buffer, bool graph, gumbel_error *error) {
    gb_program program = {.storage = gb_storage_create()};
    gb_byte_view view = {.data = buffer->data, .size = buffer->size};
    gumbel_status status =
        graph ? gb_decode_graph(view, &program, error) : gb_decode_metadata(view, &program, error);
    gb_storage_destroy(program.storage);
    return status;
}

static void assert_decodes(gb_byte_buffer *buffer, bool graph, gumbel_status expected, const char *part) {
    gumbel_error error = {0};
    gumbel_status status = decode(buffer, graph, &error);
    if (status != expected || !strstr(error.message, part))
        fail_msg("status %d, message \"%s\"; expected %d and \"%s\"", (int)status, error.message,
                 (int)expected, part);
    gb_free(buffer->data);
    *buffer = (gb_byte_buffer){0};
}

static void lengths_that_leave_their_section_are_refused(void **state) {
    (void)state;
    for (int graph = 0; graph < 2; graph++) {
        gb_byte_buffer buffer = {0};
        gb_buffer_append_u32(&buffer, GB_GRAPH_NODE);
        gb_buffer_append_u32(&buffer, UINT32_MAX);
        assert_decodes(&buffer, graph, GUMBEL_ERROR_FORMAT, "a record leaves the section");
        gb_buffer_append_u32(&buffer, GB_GRAPH_NODE);
        assert_decodes(&buffer, graph, GUMBEL_ERROR_FORMAT, "a record leaves the section");
    }
    gb_byte_buffer buffer = {0};
    size_t node = gb_record_begin(&buffer, GB_GRAPH_NODE, 0);
    gb_buffer_append_u32(&buffer, GB_NODE_FIELD_OP);
    gb_buffer_append_u32(&buffer, 5);
    gb_buffer_append_u32(&buffer, 1);
    gb_record_end(&buffer, node);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: node 0: a field leaves its record");
}

static void put_field(gb_byte_buffer *buffer, uint16_t record, uint16_t field, uint16_t flags,
                      uint32_t words) {
    size_t outer = gb_record_begin(buffer, record, GB_RECORD_CRITICAL);
    size_t inner = gb_record_begin(buffer, field, flags);
    for (uint32_t i = 0; i < words; i++)
        gb_buffer_append_u32(buffer, 1);
    gb_record_end(buffer, inner);
    gb_record_end(buffer, outer);
}

static void malformed_fields_are_refused(void **state) {
    (void)state;
    gb_byte_buffer buffer = {0};
    put_field(&buffer, GB_GRAPH_NODE, GB_NODE_FIELD_OP, 0, 2);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: node 0: field 1 is malformed");
    put_field(&buffer, GB_GRAPH_NODE, GB_NODE_FIELD_OPERANDS, 0, GB_MAX_OPERANDS + 1);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: node 0: field 2 is malformed");
    put_field(&buffer, GB_GRAPH_VALUE, GB_VALUE_FIELD_TYPE, 0, 2);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: value 0: field 2 is malformed");
    put_field(&buffer, GB_GRAPH_VALUE, GB_VALUE_FIELD_TYPE, 0, 4);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: value 0 has no field 1");
    put_field(&buffer, GB_GRAPH_CONSTANT, GB_CONSTANT_FIELD_NAME, 0, 1);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: constant 0: field 1 is malformed");
    size_t outer = gb_record_begin(&buffer, GB_GRAPH_INPUT, 0);
    for (int i = 0; i < 2; i++) {
        size_t inner = gb_record_begin(&buffer, GB_BINDING_FIELD, 0);
        gb_buffer_append_u64(&buffer, 0);
        gb_record_end(&buffer, inner);
    }
    gb_record_end(&buffer, outer);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: input 0: field 1 is given twice");
}

static void what_is_newer_is_skipped_unless_critical(void **state) {
    (void)state;
    gb_byte_buffer buffer = {0};
    put_field(&buffer, GB_GRAPH_REGION, 9, GB_RECORD_CRITICAL, 1);
    assert_decodes(&buffer, true, GUMBEL_ERROR_UNSUPPORTED, "graph: region 0 has the field 9");
    put_field(&buffer, GB_GRAPH_REGION, 900, 0, 1);
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "graph: region 0 has no field 1");
    gb_record_end(&buffer, gb_record_begin(&buffer, 60, GB_RECORD_CRITICAL));
    assert_decodes(&buffer, true, GUMBEL_ERROR_UNSUPPORTED, "graph: has the record 60");
    gb_record_end(&buffer, gb_record_begin(&buffer, 60, 0));
    assert_decodes(&buffer, true, GUMBEL_OK, "");
    size_t op = gb_record_begin(&buffer, GB_GRAPH_NODE, 0);
    size_t field = gb_record_begin(&buffer, GB_NODE_FIELD_OP, 0);
    gb_buffer_append_u32(&buffer, 99);
    gb_record_end(&buffer, field);
    gb_record_end(&buffer, op);
    assert_decodes(&buffer, true, GUMBEL_ERROR_UNSUPPORTED, "graph: node 0 is op 99, which is not known");
    gb_record_end(&buffer, gb_record_begin(&buffer, 400, 0));
    assert_decodes(&buffer, false, GUMBEL_OK, "");
    gb_record_end(&buffer, gb_record_begin(&buffer, 400, GB_RECORD_CRITICAL));
    assert_decodes(&buffer, false, GUMBEL_ERROR_UNSUPPORTED, "metadata field 400 is not known");
}

static void metadata_has_types(void **state) {
    (void)state;
    static const struct {
        uint16_t number;
        size_t size;
        const char *part;
    } fields[] = {{1, 1, "metadata: architecture is not a STRING"},
                  {6, 4, "metadata: vocab_size is not a UINT"},
                  {9, 2, "metadata: use_sampling is not a BOOL"},
                  {10, 3, "metadata: stop_tokens is not a TOKENS"},
                  {12, 9, "metadata: temperature is not a FLOAT"}};
    gb_byte_buffer buffer = {0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t begin = gb_record_begin(&buffer, fields[i].number, 0);
        gb_buffer_append(&buffer, (const uint8_t[16]){0}, fields[i].size);
        gb_record_end(&buffer, begin);
        assert_decodes(&buffer, false, GUMBEL_ERROR_FORMAT, fields[i].part);
    }
    for (int i = 0; i < 2; i++) {
        size_t begin = gb_record_begin(&buffer, 6, 0);
        gb_buffer_append_u64(&buffer, 5);
        gb_record_end(&buffer, begin);
    }
    assert_decodes(&buffer, false, GUMBEL_ERROR_FORMAT, "metadata: vocab_size is given twice");
}

/* More nodes than a program may have, in records without a byte: refused before memory is taken for them. */
static void counts_are_checked_before_memory_is_taken(void **state) {
    (void)state;
    gb_byte_buffer buffer = {0};
    for (int i = 0; i <= 1 << 20; i++)
        gb_record_end(&buffer, gb_record_begin(&buffer, GB_GRAPH_NODE, 0));
    assert_decodes(&buffer, true, GUMBEL_ERROR_FORMAT, "1048577 nodes, expected at most 1048576");
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

static bool count_down(void *user, size_t bytes) {
    int *left = user;
    (void)bytes;
    return (*left)-- > 0;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    for (int allowed = 0; status != GUMBEL_OK; allowed++) {
        int left = allowed;
        gb_program *program = NULL;
        gb_set_allocation_hook(count_down, &left);
        status = gb_program_parse("test", valid.bytes, valid.size, &program, NULL);
        gb_set_allocation_hook(NULL, NULL);
        gb_program_destroy(program);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_cut_short_are_refused),
        cmocka_unit_test(a_flipped_bit_is_found),
        cmocka_unit_test(repaired_damage_is_survived),
        cmocka_unit_test(repaired_numbers_are_survived),
        cmocka_unit_test(lengths_that_leave_their_section_are_refused),
        cmocka_unit_test(malformed_fields_are_refused),
        cmocka_unit_test(what_is_newer_is_skipped_unless_critical),
        cmocka_unit_test(metadata_has_types),
        cmocka_unit_test(counts_are_checked_before_memory_is_taken),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(repaired_damage_is_survived),
        cmocka_unit_test(repaired_numbers_are_survived),
    };
    const struct CMUnitTest of_pairs[] = {
        cmocka_unit_test(files_cut_short_are_refused),
        cmocka_unit_test(repaired_damage_is_survived),
        cmocka_unit_test(repaired_numbers_are_survived),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, make_valid, free_valid) +
           cmocka_run_group_tests(others, make_recurrent, free_valid) +
           cmocka_run_group_tests(others, make_packed, free_valid) +
           cmocka_run_group_tests(of_pairs, make_pair, free_valid);
}
