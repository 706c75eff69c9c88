/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF's block types in our formats: the same weights bit for bit as the `gguf` package gives, at GGUF's
 * size or a little more. blocks.bin is made by tests/data/quantize/make_goldens.py.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "export/quantize/import_blocks.h"
#include "export/quantize/write_imported.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint32_t read_u32(const uint8_t *bytes) {
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

static uint8_t *import_rows(const gb_block_info *info, uint32_t type, const uint8_t *blocks, uint64_t rows,
                            uint64_t columns, gb_planes *planes) {
    assert_true(gb_format_fits(&info->format, columns));
    assert_true(gb_format_planes(&info->format, rows, columns, planes));
    uint8_t *data = gb_allocate((size_t)planes->size, 1);
    assert_non_null(data);
    memset(data, 0xee, (size_t)planes->size);
    for (uint64_t r = 0; r < rows; r++) {
        gb_imported_row row = {.codes = data + planes->codes.offset + r * planes->codes.row_bytes,
                               .scales = data + planes->scales.offset + r * planes->scales.row_bytes};
        if (info->format.has_bias)
            row.biases = data + planes->biases.offset + r * planes->biases.row_bytes;
        row.super_scales = data + planes->super_scales.offset + r * planes->super_scales.row_bytes;
        row.super_biases = data + planes->super_biases.offset + r * planes->super_biases.row_bytes;
        gb_import_block_row((gb_block_type)type, blocks + r * columns / info->weights * info->bytes, columns,
                            &row);
    }
    return data;
}

static gumbel_status count_bytes(void *user, uint64_t bytes, gumbel_error *error) {
    (void)error;
    *(uint64_t *)user += bytes;
    return GUMBEL_OK;
}

/* Bits of a weight that ours has more than GGUF's: scales of whole bytes, those of ternary types twice, and
 * no grids, which say of 4 or 8 weights at once what they are. */
static double spare_bits(const gb_block_info *info) {
    static const struct {
        const char *name;
        double bits;
    } spare[] = {{"Q3_K", 0.125},  {"IQ4_XS", 0.0625}, {"TQ1_0", 0.4375}, {"TQ2_0", 0.1875},
                 {"MXFP4", 0.25},  {"NVFP4", 0.5},     {"IQ2_XXS", 1.25}, {"IQ2_XS", 1.25},
                 {"IQ2_S", 1.0},   {"IQ3_XXS", 1.25},  {"IQ3_S", 0.875},  {"IQ1_S", 1.75},
                 {"IQ1_M", 1.8125}};
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++)
        if (strcmp(info->name, spare[i].name) == 0)
            return spare[i].bits;
    return 0;
}

/* The constant that a program gets has the planes as they are above, and zeros between them. */
static void check_written(const gb_block_info *info, uint32_t type, const gb_stacked_bytes *blocks,
                          uint64_t rows, uint64_t columns, const uint8_t *data, unsigned threads) {
    gb_constant constant = {.name = "weight",
                            .type = {GB_QUANTIZED, {.rank = 2, .dims = {(int64_t)rows, (int64_t)columns}}},
                            .format = info->format};
    gb_program program = {.constants = &constant, .constant_count = 1};
    gb_planes planes;
    gb_writer *writer;
    gumbel_error error;
    uint64_t written = 0;
    assert_true(gb_constant_planes(&constant, &planes));
    constant.size = planes.size;
    assert_ok(gb_writer_create(temporary_path("out.gumbel"), NULL, &program, &writer, &error), &error);
    assert_ok(gb_writer_begin_constant(writer, 0, &error), &error);
    assert_ok(gb_write_imported(writer, &constant, (gb_block_type)type, blocks, threads,
                                &(gb_written_callback){count_bytes, &written}, &error),
              &error);
    assert_int_equal(written, planes.size);
    assert_ok(gb_writer_finish(writer, &error), &error);
    gb_file_map map;
    assert_ok(gb_map_file(temporary_path("out.gumbel"), &map, &error), &error);
    const uint8_t *found = map.data + constant.offset;
    const gb_plane *all[] = {&planes.codes, &planes.scales, &planes.biases, &planes.super_scales,
                             &planes.super_biases};
    uint64_t end = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->row_bytes == 0)
            continue;
        for (; end < all[i]->offset; end++)
            assert_int_equal(found[end], 0);
        assert_memory_equal(found + end, data + end, all[i]->row_bytes * rows);
        end += all[i]->row_bytes * rows;
    }
    assert_int_equal(end, planes.size);
    gb_unmap_file(&map);
}

/* Two parts, one row of each in turns, are written as the whole would be. */
static void check_stacked(const gb_block_info *info, uint32_t type, const uint8_t *blocks, uint64_t rows,
                          uint64_t columns) {
    const uint64_t row_bytes = columns / info->weights * info->bytes, half = rows / 2;
    const gb_stacked_bytes parts = {.parts = (const uint8_t *const[]){blocks, blocks + half * row_bytes},
                                    .stacking = {.parts = 2, .run = 1}};
    uint8_t *whole = gb_allocate((size_t)(2 * half), (size_t)row_bytes);
    gb_planes planes;
    assert_non_null(whole);
    assert_true(half > 0);
    for (uint64_t row = 0; row < 2 * half; row++)
        memcpy(whole + row * row_bytes, blocks + (row % 2 * half + row / 2) * row_bytes, (size_t)row_bytes);
    uint8_t *data = import_rows(info, type, whole, 2 * half, columns, &planes);
    check_written(info, type, &parts, 2 * half, columns, data, 3);
    gb_free(data);
    gb_free(whole);
}

static const uint8_t *check_type(const uint8_t *at) {
    enum { COLUMNS = 512 };
    float values[COLUMNS];
    uint32_t type = read_u32(at), rows = read_u32(at + 4), columns = read_u32(at + 8);
    const gb_block_info *info = gb_block_find(type);
    assert_non_null(info);
    assert_int_equal(columns, COLUMNS);
    double size = 8.0 * info->bytes / info->weights;
    assert_true(gb_format_bits_per_weight(&info->format, columns) == size + spare_bits(info));
    const uint8_t *blocks = at + 12, *expected = blocks + rows * columns / info->weights * info->bytes;
    gb_planes planes;
    uint8_t *data = import_rows(info, type, blocks, rows, columns, &planes);
    for (uint32_t r = 0; r < rows; r++) {
        gb_format_dequantize(&info->format, &planes, data, r, 0, columns, values);
        if (memcmp(values, expected + r * sizeof values, sizeof values) != 0)
            fail_msg("%s: row %u has other weights", info->name, r);
    }
    const gb_stacked_bytes whole = {.parts = (const uint8_t *const[]){blocks}};
    check_written(info, type, &whole, rows, columns, data, 1);
    check_written(info, type, &whole, rows, columns, data, 3);
    gb_free(data);
    check_stacked(info, type, blocks, rows, columns);
    return expected + rows * sizeof values;
}

static void every_type_keeps_its_bits(void **unused) {
    (void)unused;
    gb_file_map map;
    gumbel_error error;
    assert_ok(gb_map_file(test_data("quantize/blocks.bin"), &map, &error), &error);
    int types = 0;
    for (const uint8_t *at = map.data; at < map.data + map.size; types++)
        at = check_type(at);
    assert_int_equal(types, 23);
    gb_unmap_file(&map);
}

static void other_types_are_not_held(void **unused) {
    (void)unused;
    static const uint32_t types[] = {0, 1, 4, 5, 9, 15, 24, 30, 41, 42, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_null(gb_block_find(types[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_keeps_its_bits),
        cmocka_unit_test(other_types_are_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
