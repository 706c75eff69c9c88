/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules F1 to F13 of docs/program-format.md, each broken alone in a file whose checksums fit.
 */
#include "base/memory.h"
#include "program/file/reader.h"
#include "program/file/records.h"
#include "support/programs/program_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static program_file valid;

static int make_valid(void **state) {
    (void)state;
    valid = tiny_program_file(true);
    return 0;
}

static int free_valid(void **state) {
    (void)state;
    gb_free(valid.bytes);
    return 0;
}

/* Puts a number into the header or the entry of a section, repairs the checksums and expects a refusal. */
static void refuse_u64(uint32_t section, size_t field, uint64_t value, const char *part) {
    program_file file = copy_program_file(&valid, 0);
    gb_put_u64((section ? section_entry(&file, section) : file.bytes) + field, value);
    repair_checksums(&file);
    assert_refused(&file, GUMBEL_ERROR_FORMAT, part);
    gb_free(file.bytes);
}

static void refuse_u32(uint32_t section, size_t field, uint32_t value, gumbel_status status,
                       const char *part) {
    program_file file = copy_program_file(&valid, 0);
    gb_put_u32((section ? section_entry(&file, section) : file.bytes) + field, value);
    repair_checksums(&file);
    assert_refused(&file, status, part);
    gb_free(file.bytes);
}

static void rule_F1_magic(void **state) {
    (void)state;
    refuse_u32(0, GB_HEADER_MAGIC, 0x46554747, GUMBEL_ERROR_FORMAT, "not a gumbel program");
    program_file empty = {valid.bytes, 0}, cut = {valid.bytes, GB_HEADER_BYTES - 1};
    assert_refused(&empty, GUMBEL_ERROR_FORMAT, "0 bytes, too short");
    assert_refused(&cut, GUMBEL_ERROR_FORMAT, "63 bytes, too short");
}

static void rule_F2_reader_version(void **state) {
    (void)state;
    refuse_u32(0, GB_HEADER_READER_VERSION, 4, GUMBEL_ERROR_UNSUPPORTED,
               "needs a reader of format version 4, this one reads up to 3");
    refuse_u32(0, GB_HEADER_VERSION, 2, GUMBEL_ERROR_UNSUPPORTED, "export it again");
}

static void a_newer_writer_is_no_reason_to_refuse(void **state) {
    (void)state;
    program_file file = copy_program_file(&valid, 0);
    gb_put_u32(file.bytes + GB_HEADER_VERSION, 9);
    repair_checksums(&file);
    gb_program *program;
    assert_int_equal(gb_program_parse("test", file.bytes, file.size, &program, NULL), GUMBEL_OK);
    gb_program_destroy(program);
    gb_free(file.bytes);
}

static void rule_F3_header_checksum(void **state) {
    (void)state;
    program_file file = copy_program_file(&valid, 0);
    file.bytes[GB_HEADER_SECTIONS] ^= 1;
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "the header's checksum does not match");
    gb_free(file.bytes);
}

static void rule_F4_file_size(void **state) {
    (void)state;
    program_file file = copy_program_file(&valid, 1);
    file.size--;
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "truncated");
    file.size += 2;
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "something was added");
    gb_free(file.bytes);
}

static void rule_F5_table(void **state) {
    (void)state;
    program_file file = copy_program_file(&valid, 0);
    file.bytes[GB_HEADER_BYTES + GB_ENTRY_CHECKSUM + GB_ENTRY_BYTES] ^= 1;
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "the section table's checksum does not match");
    gb_free(file.bytes);
    refuse_u32(0, GB_HEADER_SECTIONS, 65, GUMBEL_ERROR_FORMAT, "a table of 65 sections");
    static const uint64_t offsets[] = {0, 63, UINT64_MAX, UINT64_MAX - 31};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        file = copy_program_file(&valid, 0);
        repair_checksums(&file);
        gb_put_u64(file.bytes + GB_HEADER_TABLE, offsets[i]);
        repair_checksums(&file); /* does what it can */
        gb_program *program;
        assert_int_equal(gb_program_parse("test", file.bytes, file.size, &program, NULL),
                         GUMBEL_ERROR_FORMAT);
        gb_free(file.bytes);
    }
}

static void rule_F6_section_places(void **state) {
    (void)state;
    uint64_t graph = gb_get_u64(section_entry(&valid, GB_SECTION_GRAPH) + GB_ENTRY_OFFSET);
    refuse_u64(GB_SECTION_GRAPH, GB_ENTRY_OFFSET, graph + 64, "do not fit the file");
    refuse_u64(GB_SECTION_GRAPH, GB_ENTRY_OFFSET, 0, "do not fit the file");
    refuse_u64(GB_SECTION_GRAPH, GB_ENTRY_OFFSET, UINT64_MAX & ~UINT64_C(4095), "do not fit the file");
    refuse_u64(GB_SECTION_GRAPH, GB_ENTRY_SIZE, UINT64_MAX, "do not fit the file");
    refuse_u64(GB_SECTION_WEIGHTS, GB_ENTRY_SIZE, valid.size, "do not fit the file");
    refuse_u64(GB_SECTION_METADATA, GB_ENTRY_SIZE, GB_SECTION_ALIGNMENT + 1, "overlaps section");
    refuse_u64(GB_SECTION_GRAPH, GB_ENTRY_OFFSET, GB_SECTION_ALIGNMENT, "overlaps section");
}

static void rule_F7_section_kinds(void **state) {
    (void)state;
    refuse_u32(GB_SECTION_CHAT, GB_ENTRY_KIND, 77, GUMBEL_ERROR_UNSUPPORTED, "a section of kind 77");
    refuse_u32(GB_SECTION_CHAT, GB_ENTRY_KIND, GB_SECTION_GRAPH, GUMBEL_ERROR_FORMAT, "two sections graph");
    program_file file = copy_program_file(&valid, 0);
    uint8_t *entry = section_entry(&file, GB_SECTION_CHAT);
    gb_put_u32(entry + GB_ENTRY_KIND, 77);
    gb_put_u32(entry + GB_ENTRY_FLAGS, 0);
    repair_checksums(&file);
    gb_program *program;
    assert_int_equal(gb_program_parse("test", file.bytes, file.size, &program, NULL), GUMBEL_OK);
    gb_program_destroy(program);
    gb_free(file.bytes);
}

static void rule_F8_section_checksums(void **state) {
    (void)state;
    static const struct {
        uint32_t kind;
        const char *part;
    } sections[] = {{GB_SECTION_METADATA, "checksum of the section metadata"},
                    {GB_SECTION_GRAPH, "checksum of the section graph"},
                    {GB_SECTION_TOKENIZER, "checksum of the section tokenizer"},
                    {GB_SECTION_CHAT, "checksum of the section chat"},
                    {GB_SECTION_TRIE, "checksum of the section trie"}};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        program_file file = copy_program_file(&valid, 0);
        file.bytes[gb_get_u64(section_entry(&file, sections[i].kind) + GB_ENTRY_OFFSET) + 9] ^= 4;
        assert_refused(&file, GUMBEL_ERROR_FORMAT, sections[i].part);
        gb_free(file.bytes);
    }
}

static void rule_F9_required_sections(void **state) {
    (void)state;
    for (uint32_t kind = GB_SECTION_METADATA; kind <= GB_SECTION_GRAPH; kind++) {
        program_file file = copy_program_file(&valid, 0);
        uint8_t *entry = section_entry(&file, kind);
        gb_put_u32(entry + GB_ENTRY_KIND, 77);
        gb_put_u32(entry + GB_ENTRY_FLAGS, 0);
        repair_checksums(&file);
        assert_refused(&file, GUMBEL_ERROR_FORMAT, "has no section");
        gb_free(file.bytes);
    }
}

/* The place of the first constant's data field in a graph section: its record is the first. */
static uint8_t *constant_data(const program_file *file, uint32_t section) {
    uint8_t *graph = file->bytes + gb_get_u64(section_entry(file, section) + GB_ENTRY_OFFSET);
    uint8_t *field = graph + GB_RECORD_BYTES;
    while ((gb_get_u32(field) & 0xffff) != GB_CONSTANT_FIELD_DATA)
        field += GB_RECORD_BYTES + gb_get_u32(field + 4);
    return field + GB_RECORD_BYTES;
}

static uint8_t *first_constant_data(const program_file *file) {
    return constant_data(file, GB_SECTION_GRAPH);
}

static void rule_F10_constants_lie_in_the_weights(void **state) {
    (void)state;
    uint64_t offset = gb_get_u64(first_constant_data(&valid));
    const uint64_t offsets[] = {offset + 4, 0, valid.size & ~UINT64_C(63), UINT64_MAX & ~UINT64_C(63),
                                gb_get_u64(section_entry(&valid, GB_SECTION_METADATA) + GB_ENTRY_OFFSET)};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        program_file file = copy_program_file(&valid, 0);
        gb_put_u64(first_constant_data(&file), offsets[i]);
        repair_checksums(&file);
        assert_refused(&file, GUMBEL_ERROR_FORMAT, "constant embedding: 3072 bytes at byte");
        gb_free(file.bytes);
    }
}

static void rule_F11_weights_are_checked_on_demand(void **state) {
    (void)state;
    program_file file = copy_program_file(&valid, 0);
    file.bytes[gb_get_u64(first_constant_data(&file))] ^= 1;
    gb_program *program;
    gumbel_error error;
    assert_int_equal(gb_program_parse("test", file.bytes, file.size, &program, &error), GUMBEL_OK);
    assert_int_equal(gb_check_weights(program, &error), GUMBEL_ERROR_FORMAT);
    assert_string_equal(error.message, "the checksum of the constant embedding does not match");
    gb_program_destroy(program);
    gb_free(file.bytes);
}

/* ---- Files with a draft head --------------------------------------------------------------------------- */

static void rule_F12_both_sections_of_a_head(void **state) {
    (void)state;
    program_file pair = tiny_pair_file();
    for (uint32_t kind = GB_SECTION_HEAD_METADATA; kind <= GB_SECTION_HEAD_GRAPH; kind++) {
        program_file file = copy_program_file(&pair, 0);
        uint8_t *entry = section_entry(&file, kind);
        gb_put_u32(entry + GB_ENTRY_KIND, 77);
        gb_put_u32(entry + GB_ENTRY_FLAGS, 0);
        repair_checksums(&file);
        assert_refused(&file, GUMBEL_ERROR_FORMAT,
                       kind == GB_SECTION_HEAD_GRAPH ? "has no section head graph"
                                                     : "has no section head metadata");
        gb_free(file.bytes);
    }
    gb_free(pair.bytes);
}

/* The data of the first constant of the head, which is the program's too. */
static uint8_t *first_head_data(const program_file *file) {
    return constant_data(file, GB_SECTION_HEAD_GRAPH);
}

static void rule_F13_shared_constants_lie_in_one_place(void **state) {
    (void)state;
    enum { CHECKSUM = 16 };
    program_file pair = tiny_pair_file(), file = copy_program_file(&pair, 0);
    gb_put_u64(first_head_data(&file), gb_get_u64(first_head_data(&file)) + 64);
    repair_checksums(&file);
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "constant embedding is the program's, but lies elsewhere");
    gb_put_u64(first_head_data(&file), gb_get_u64(first_head_data(&pair)));
    first_head_data(&file)[CHECKSUM] ^= 1;
    repair_checksums(&file);
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "constant embedding is the program's, but lies elsewhere");
    gb_put_u64(first_head_data(&file), 0);
    repair_checksums(&file);
    assert_refused(&file, GUMBEL_ERROR_FORMAT, "draft head: constant embedding: 3072 bytes at byte 0");
    gb_free(file.bytes);
    gb_free(pair.bytes);
}

static void a_heads_weights_are_checked_on_demand(void **state) {
    (void)state;
    program_file file = tiny_pair_file();
    gb_program *program;
    gumbel_error error;
    assert_int_equal(gb_program_parse("test", file.bytes, file.size, &program, &error), GUMBEL_OK);
    assert_int_equal(gb_check_weights(program, &error), GUMBEL_OK);
    const gb_constant *own = program->head->constants;
    while (own->same)
        own++;
    file.bytes[own->offset] ^= 1;
    assert_int_equal(gb_check_weights(program, &error), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, own->name));
    gb_program_destroy(program);
    gb_free(file.bytes);
}

static void bytes_must_be_aligned(void **state) {
    (void)state;
    gb_program *program;
    gumbel_error error;
    assert_int_equal(gb_program_parse("test", valid.bytes + 8, valid.size - 8, &program, &error),
                     GUMBEL_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_F1_magic),
        cmocka_unit_test(rule_F2_reader_version),
        cmocka_unit_test(a_newer_writer_is_no_reason_to_refuse),
        cmocka_unit_test(rule_F3_header_checksum),
        cmocka_unit_test(rule_F4_file_size),
        cmocka_unit_test(rule_F5_table),
        cmocka_unit_test(rule_F6_section_places),
        cmocka_unit_test(rule_F7_section_kinds),
        cmocka_unit_test(rule_F8_section_checksums),
        cmocka_unit_test(rule_F9_required_sections),
        cmocka_unit_test(rule_F10_constants_lie_in_the_weights),
        cmocka_unit_test(rule_F11_weights_are_checked_on_demand),
        cmocka_unit_test(rule_F12_both_sections_of_a_head),
        cmocka_unit_test(rule_F13_shared_constants_lie_in_one_place),
        cmocka_unit_test(a_heads_weights_are_checked_on_demand),
        cmocka_unit_test(bytes_must_be_aligned),
    };
    return cmocka_run_group_tests(tests, make_valid, free_valid);
}
