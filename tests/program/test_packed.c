/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed constants in a program: chosen, written, read back and printed; what is refused of them.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "base/text_sink.h"
#include "program/constant_packing.h"
#include "program/file/format.h"
#include "program/file/pack_stream.h"
#include "program/file/reader.h"
#include "program/file/records.h"
#include "program/print/printer.h"
#include "support/assertions.h"
#include "support/programs/broken_program.h"
#include "support/programs/program_file.h"
#include "support/programs/quantized_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void weights_of_products_are_packed(void **unused) {
    (void)unused;
    gb_program *program = packed_program_build();
    gb_packing expected;
    assert_true(
        gb_packing_interleaved(&quantized_head_format, QUANTIZED_VOCABULARY, QUANTIZED_WIDTH, &expected));
    assert_true(gb_packing_equal(&program->constants[QUANTIZED_HEAD].packing, &expected));
    assert_int_equal(program->constants[QUANTIZED_TABLE].packing.block_rows, 0);
    assert_int_equal(program->constants[QUANTIZED_NORM].packing.block_rows, 0);
    assert_ok(gb_program_choose_packings(program, GB_ORDER_CANONICAL, NULL), NULL);
    assert_int_equal(program->constants[QUANTIZED_HEAD].packing.block_rows, 0);
    gb_program_destroy(program);
}

/* Blocks do not hold rows of two experts. */
static void experts_are_packed_apart(void **unused) {
    (void)unused;
    gb_constant experts = {.type = {GB_QUANTIZED, {3, {4, 24, QUANTIZED_WIDTH}}},
                           .format = quantized_head_format};
    const gb_constant_use use = {.is_multiplied = true};
    assert_int_equal(gb_constant_wanted_packing(&experts, &use, GB_ORDER_INTERLEAVED).block_rows, 0);
    experts.type.shape.dims[1] = 32;
    assert_int_equal(gb_constant_wanted_packing(&experts, &use, GB_ORDER_INTERLEAVED).block_rows, 16);
    assert_int_equal(
        gb_constant_wanted_packing(&experts, &(gb_constant_use){0}, GB_ORDER_INTERLEAVED).block_rows, 0);
}

/* Embeddings read tiles and fragments. */
static void tied_tables_are_packed(void **unused) {
    (void)unused;
    gb_program *program = packed_program_build();
    gb_constant_use uses[16];
    assert_true(program->constant_count <= sizeof uses / sizeof *uses);
    gb_node *embedding = NULL, *linear = NULL;
    for (uint32_t i = 0; i < program->node_count; i++) {
        embedding = program->nodes[i].op == GB_OP_EMBEDDING ? &program->nodes[i] : embedding;
        linear = program->nodes[i].op == GB_OP_LINEAR ? &program->nodes[i] : linear;
    }
    assert_true(embedding && linear);
    embedding->operands[0] = linear->operands[1];
    gb_find_constant_uses(program, uses);
    assert_true(uses[QUANTIZED_HEAD].is_multiplied && !uses[QUANTIZED_HEAD].has_others);
    assert_false(uses[QUANTIZED_TABLE].is_multiplied);
    assert_int_equal(gb_constant_wanted_packing(&program->constants[QUANTIZED_HEAD], &uses[QUANTIZED_HEAD],
                                                GB_ORDER_FRAGMENTS)
                         .block_rows,
                     16);
    gb_program_destroy(program);
}

static gb_program *parse(const program_file *file) {
    gb_program *program = NULL;
    gumbel_error error;
    assert_ok(gb_program_parse("test", file->bytes, file->size, &program, &error), &error);
    return program;
}

static void packings_are_written_and_read(void **unused) {
    (void)unused;
    gb_program *program = packed_program_build();
    program_file file = packed_program_file();
    gb_program *again = parse(&file);
    for (uint32_t i = 0; i < program->constant_count; i++)
        assert_true(gb_packing_equal(&program->constants[i].packing, &again->constants[i].packing));
    gb_program_destroy(again);
    gb_program_destroy(program);
    gb_free(file.bytes);
}

/* Unpacks what the file holds, whole and in pieces, and packs it again. */
static void canonical_bytes_come_back(void **unused) {
    (void)unused;
    program_file file = packed_program_file();
    gb_program *program = parse(&file);
    const gb_constant *head = &program->constants[QUANTIZED_HEAD];
    gb_planes planes;
    assert_true(gb_constant_planes(head, &planes));
    uint8_t *canonical = gb_allocate((size_t)head->size, 1), *packed = gb_allocate((size_t)head->size, 1);
    assert_true(canonical && packed);
    gb_constant_canonical(head, canonical);
    assert_memory_not_equal(canonical, head->data, (size_t)head->size);
    gb_pack_matrix(&head->packing, &head->format, QUANTIZED_VOCABULARY, QUANTIZED_WIDTH, canonical, packed);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind <= GB_PLANE_BIASES; kind++) {
        const gb_plane *plane = gb_plane_of(&planes, kind);
        assert_memory_equal(packed + plane->offset, head->data + plane->offset,
                            QUANTIZED_VOCABULARY * plane->row_bytes);
        gb_constant_canonical_rows(head, kind, 32, 16, packed);
        assert_memory_equal(packed, canonical + plane->offset + 32 * plane->row_bytes, 16 * plane->row_bytes);
    }
    gb_free(canonical);
    gb_free(packed);
    gb_program_destroy(program);
    gb_free(file.bytes);
}

/* The writer gets canonical bytes in chunks of any size. */
static void chunks_change_nothing(void **unused) {
    (void)unused;
    gb_program *program = packed_program_build();
    gb_constant *head = &program->constants[QUANTIZED_HEAD];
    uint8_t *canonical = gb_allocate((size_t)head->size, 1), *expected = gb_allocate((size_t)head->size, 1),
            *found = gb_allocate((size_t)head->size, 1);
    assert_true(canonical && expected && found);
    for (uint64_t i = 0; i < head->size; i++)
        canonical[i] = (uint8_t)(i * 89 >> 3);
    gb_pack_matrix(&head->packing, &head->format, QUANTIZED_VOCABULARY, QUANTIZED_WIDTH, canonical, expected);
    static const uint64_t chunks[] = {1, 7, 64, 513, 3000, 100000};
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        gb_pack_stream stream = {0};
        uint64_t at = 0;
        gb_pack_stream_begin(&stream, head);
        for (uint64_t given = 0; given < head->size; given += chunks[c]) {
            const uint8_t *data = canonical + given, *written;
            uint64_t size = head->size - given < chunks[c] ? head->size - given : chunks[c], count;
            while (size > 0) {
                assert_ok(gb_pack_stream_next(&stream, &data, &size, &written, &count, NULL), NULL);
                memcpy(found + at, written, (size_t)count);
                at += count;
            }
        }
        assert_int_equal(at, head->size);
        assert_memory_equal(found, expected, (size_t)head->size);
        gb_pack_stream_end(&stream);
    }
    gb_free(canonical);
    gb_free(expected);
    gb_free(found);
    gb_program_destroy(program);
}

/* ---- What is refused ----------------------------------------------------------------------------------- */

/* The file with word `index` of its packing field replaced. */
static void refuse_word(size_t index, uint32_t value, const char *part) {
    program_file file = packed_program_file();
    const uint8_t *entry = section_entry(&file, GB_SECTION_GRAPH);
    uint8_t *at = file.bytes + gb_get_u64(entry + GB_ENTRY_OFFSET);
    const uint8_t *end = at + gb_get_u64(entry + GB_ENTRY_SIZE);
    const uint8_t head[] = {GB_CONSTANT_FIELD_PACKING, 0, GB_RECORD_CRITICAL, 0};
    while (at + 12 + 4 * index <= end && (memcmp(at, head, sizeof head) != 0 || gb_get_u32(at + 8) != 16))
        at++;
    assert_true(at + 12 + 4 * index <= end);
    gb_put_u32(at + GB_RECORD_BYTES + 4 * index, value);
    repair_checksums(&file);
    assert_refused(&file, GUMBEL_ERROR_FORMAT, part);
    gb_free(file.bytes);
}

/* Words: rows of a block; of the codes' layout parts, flags, five times axis and size, order. */
static void broken_fields_are_refused(void **unused) {
    (void)unused;
    refuse_word(0, 0, "constant 2: field 5 is malformed");
    refuse_word(1, GB_MAX_LAYOUT_PARTS + 1, "field 5 is malformed");
    refuse_word(1, 4, "field 5 is malformed"); /* what follows is not as long as the rest */
    refuse_word(2, 2, "field 5 is malformed");
    refuse_word(3, 2, "field 5 is malformed");
    refuse_word(13, 5, "field 5 is malformed");
}

static void refuse_packing(void (*change)(gb_program *), const char *part) {
    gb_program *program = packed_program_build();
    change(program);
    refuse_as(program, GUMBEL_ERROR_FORMAT, part);
    gb_program_destroy(program);
}

static gb_packing *head_packing(gb_program *program) {
    return &program->constants[QUANTIZED_HEAD].packing;
}

static void pack_dense(gb_program *program) {
    program->constants[QUANTIZED_NORM].packing = *head_packing(program);
}
static void set_uneven_blocks(gb_program *program) {
    head_packing(program)->block_rows = 36; /* the head has 96 rows */
}
static void set_large_blocks(gb_program *program) {
    const int64_t rows = 8 * GB_MAX_BLOCK_ROWS;
    gb_constant *head = &program->constants[QUANTIZED_HEAD];
    head->type.shape.dims[0] = rows;
    assert_true(gb_constant_bytes(head, &head->size));
    head->packing.block_rows = 2 * GB_MAX_BLOCK_ROWS;
}
static void set_large_part(gb_program *program) {
    head_packing(program)->codes.parts[1].size = 32; /* of a block of 16 */
}
static void set_second_open_part(gb_program *program) {
    head_packing(program)->codes.parts[1].size = 0;
}
static void repeat_in_order(gb_program *program) {
    head_packing(program)->scales.order[0] = head_packing(program)->scales.order[1];
}
static void drop_scales(gb_program *program) {
    head_packing(program)->scales = (gb_layout){0};
}
static void add_supers(gb_program *program) {
    head_packing(program)->supers = head_packing(program)->scales;
}
static void add_high_codes(gb_program *program) {
    head_packing(program)->high_codes = head_packing(program)->codes;
}
static void swap_nibbles_of_scales(gb_program *program) {
    head_packing(program)->scales.high_nibble_first = true;
}

static void rule_of_packings(void **unused) {
    (void)unused;
    static const char part[] =
        "constant head: quantized[96,64] in the weight format int4 g32 bf16+bias cannot have its packing";
    refuse_packing(pack_dense, "constant norm: f32[64] in the weight format f32 cannot have its packing");
    refuse_packing(set_uneven_blocks, part);
    refuse_packing(set_large_blocks, "cannot have its packing");
    refuse_packing(set_large_part, part);
    refuse_packing(set_second_open_part, part);
    refuse_packing(repeat_in_order, part);
    refuse_packing(drop_scales, part);
    refuse_packing(add_supers, part);
    refuse_packing(add_high_codes, part);
    refuse_packing(swap_nibbles_of_scales, part);
}

/* ---- Printing ------------------------------------------------------------------------------------------ */

static void packings_are_printed(void **unused) {
    (void)unused;
    gb_program *program = packed_program_build();
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_tensors(program, &sink);
    assert_non_null(strstr(gb_buffer_string(&printed), "  canonical\nhead "));
    assert_non_null(strstr(gb_buffer_string(&printed), "  interleaved 16\n3 tensors"));
    gb_buffer_free(&printed);
    gb_print_json(program, 0, &sink);
    assert_non_null(strstr(gb_buffer_string(&printed), "\"packing\":\"interleaved 16\""));
    gb_buffer_free(&printed);
    head_packing(program)->codes.parts[1].size = 8;
    assert_string_equal(gb_constant_packing_text(&program->constants[QUANTIZED_HEAD]), "packed");
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_products_are_packed), cmocka_unit_test(experts_are_packed_apart),
        cmocka_unit_test(tied_tables_are_packed),         cmocka_unit_test(packings_are_written_and_read),
        cmocka_unit_test(canonical_bytes_come_back),      cmocka_unit_test(chunks_change_nothing),
        cmocka_unit_test(broken_fields_are_refused),      cmocka_unit_test(rule_of_packings),
        cmocka_unit_test(packings_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
