/* SPDX-License-Identifier: Apache-2.0
 *
 * Packings: the known ones say where each number lies, and every packing is undone exactly.
 */
#include "tensor/packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const gb_format FORMATS[] = {
    {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0},
    {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 32, 0},
    {GB_FORMAT_ONE_LEVEL, 5, true, 0, GB_F16, 32, 0},
    {GB_FORMAT_ONE_LEVEL, 6, true, 0, GB_F16, 128, 0},
    {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 64, 0},
    {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 0, 0},
    {GB_FORMAT_TWO_LEVEL, 4, true, 6, GB_F16, 32, 0},
    {GB_FORMAT_TWO_LEVEL, 5, true, 6, GB_F16, 32, 0},
    {GB_FORMAT_TWO_LEVEL, 6, false, 8, GB_F16, 16, 0},
    {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
    {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0},
    {GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 32, 0},
    {GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 128, 0},
    {GB_FORMAT_ONE_LEVEL, 2, false, 0, GB_F16, 128, 0},
    {GB_FORMAT_TWO_LEVEL, 2, true, 4, GB_F16, 16, 0},
    {GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 16, 0},
    {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 16, GB_BOOK_E2M1},
    {GB_FORMAT_TWO_LEVEL, 4, false, 8, GB_F16, 32, GB_BOOK_IQ4},
};

enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS, ROWS = 48, COLUMNS = 512 };

static uint8_t *random_bytes(size_t count) {
    uint8_t *bytes = malloc(count);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(rand() >> 7);
    return bytes;
}

typedef bool (*make_packing)(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing);

/* Packs a random matrix and back. */
static void assert_undone(const gb_format *format, make_packing make) {
    gb_packing packing;
    gb_planes planes;
    assert_true(make(format, ROWS, COLUMNS, &packing));
    assert_true(gb_packing_fits(&packing, format, ROWS, COLUMNS));
    assert_true(gb_format_planes(format, ROWS, COLUMNS, &planes));
    uint8_t *packed = random_bytes(planes.size), *matrix = random_bytes(planes.size),
            *again = random_bytes(planes.size);
    gb_pack_matrix(&packing, format, ROWS, COLUMNS, matrix, packed);
    gb_unpack_matrix(&packing, format, ROWS, COLUMNS, packed, again);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++) {
        const gb_plane *plane = gb_plane_of(&planes, kind);
        assert_memory_equal(matrix + plane->offset, again + plane->offset, ROWS * plane->row_bytes);
    }
    free(packed);
    free(matrix);
    free(again);
}

static bool has_fragments(const gb_format *format) {
    return format->kind == GB_FORMAT_ONE_LEVEL && (format->bits == 4 || format->bits == 8) &&
           format->book == GB_BOOK_NONE;
}

static void test_unpacking_undoes(void **state) {
    (void)state;
    for (size_t f = 0; f < FORMAT_COUNT; f++) {
        assert_undone(&FORMATS[f], gb_packing_interleaved);
        if (has_fragments(&FORMATS[f]))
            assert_undone(&FORMATS[f], gb_packing_fragments);
    }
}

/* Bits of a code, of which a byte has those of columns 4 apart. */
static uint32_t piece_at(const uint8_t *bytes, uint32_t bits, uint32_t row, uint32_t column) {
    const uint32_t step = 32 / bits, byte = bytes[column / step * 64 + row % 16 * 4 + column % 4];
    return byte >> (column % step / 4 * bits) & ((1u << bits) - 1);
}

/* The code of a packed plane, by the words of packing.h. */
static uint32_t code_at(const gb_format *format, const uint8_t *codes, uint64_t row_bytes, uint32_t row,
                        uint32_t column) {
    const uint8_t *block = codes + row / 16 * 16 * row_bytes;
    if (format->bits == 8)
        return block[column / 4 * 64 + row % 16 * 4 + column % 4];
    const uint32_t low_bits = format->bits < 4 ? 2 : 4, bits = format->bits - low_bits;
    const uint32_t low = piece_at(block, low_bits, row, column);
    return bits ? low | piece_at(block + 2 * COLUMNS * low_bits, bits, row, column) << low_bits : low;
}

/* Group bytes and super-scales: those of 16 rows for a group, or the row, one after the other. */
static void assert_bytes_of_16_rows(const gb_planes *planes, const uint8_t *matrix, const uint8_t *packed) {
    const uint64_t groups = planes->scales.row_bytes;
    matrix += planes->scales.offset;
    packed += planes->scales.offset;
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint64_t group = 0; group < groups; group++)
            assert_int_equal(packed[row / 16 * 16 * groups + group * 16 + row % 16],
                             matrix[row * groups + group]);
    const uint64_t supers = planes->super_scales.offset - planes->scales.offset;
    assert_memory_equal(packed + supers, matrix + supers, ROWS * 2);
}

static void test_interleaved_order(void **state) {
    (void)state;
    for (size_t f = 0; f < FORMAT_COUNT; f++) {
        gb_packing packing;
        gb_planes planes;
        assert_true(gb_packing_interleaved(&FORMATS[f], ROWS, COLUMNS, &packing));
        assert_true(gb_format_planes(&FORMATS[f], ROWS, COLUMNS, &planes));
        uint8_t *matrix = random_bytes(planes.size), *packed = random_bytes(planes.size);
        gb_pack_matrix(&packing, &FORMATS[f], ROWS, COLUMNS, matrix, packed);
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t column = 0; column < COLUMNS; column++)
                assert_int_equal(gb_get_code(matrix + row * planes.codes.row_bytes, FORMATS[f].bits, column),
                                 code_at(&FORMATS[f], packed, planes.codes.row_bytes, row, column));
        if (FORMATS[f].kind == GB_FORMAT_PROGRESSIVE)
            assert_bytes_of_16_rows(&planes, matrix, packed);
        free(matrix);
        free(packed);
    }
}

/* The code of a plane in fragments, by the words of packing.h. */
static uint32_t fragment_code_at(const gb_format *format, const uint8_t *codes, uint64_t row_bytes,
                                 uint32_t row, uint32_t column) {
    uint32_t lane = row % 8 * 4 + column % 32 / 8, half = row % 16 / 8;
    const uint8_t *at = codes + row / 16 * 16 * row_bytes + lane * 16;
    if (format->bits == 8)
        return at[column / 32 * 512 + half * 8 + column % 8];
    at += column / 64 * 512 + column % 64 / 32 * 8 + half * 4;
    return at[column % 8 / 2] >> (column % 2 * 4) & 15;
}

static void test_fragments_order(void **state) {
    (void)state;
    for (size_t f = 0; f < FORMAT_COUNT; f++) {
        gb_packing packing;
        gb_planes planes;
        if (!has_fragments(&FORMATS[f]))
            continue;
        assert_true(gb_packing_fragments(&FORMATS[f], ROWS, COLUMNS, &packing));
        assert_true(gb_format_planes(&FORMATS[f], ROWS, COLUMNS, &planes));
        uint8_t *matrix = random_bytes(planes.size), *packed = random_bytes(planes.size);
        gb_pack_matrix(&packing, &FORMATS[f], ROWS, COLUMNS, matrix, packed);
        for (uint32_t row = 0; row < ROWS; row++) {
            const uint8_t *scales = matrix + planes.scales.offset + row * planes.scales.row_bytes;
            const uint8_t *block = packed + planes.scales.offset + row / 16 * 16 * planes.scales.row_bytes;
            for (uint32_t column = 0; column < COLUMNS; column++)
                assert_int_equal(gb_get_code(matrix + row * planes.codes.row_bytes, FORMATS[f].bits, column),
                                 fragment_code_at(&FORMATS[f], packed, planes.codes.row_bytes, row, column));
            for (uint32_t group = 0; group < planes.scales.row_bytes / 2; group++)
                assert_memory_equal(scales + 2 * group, block + 2 * (group * 16 + row % 8 * 2 + row % 16 / 8),
                                    2);
        }
        free(matrix);
        free(packed);
    }
}

/* Tiles of 128 rows and columns, by the words of packing.h. */
static void test_tiles_order(void **state) {
    (void)state;
    static const gb_format formats[] = {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                                        {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0},
                                        {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 128, 0}};
    enum { TILED_ROWS = 256, TILED_COLUMNS = 384, BLOCKS = TILED_COLUMNS / 128 };
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        gb_packing packing;
        gb_planes planes;
        assert_true(gb_packing_tiles(&formats[f], TILED_ROWS, TILED_COLUMNS, &packing));
        assert_true(gb_format_planes(&formats[f], TILED_ROWS, TILED_COLUMNS, &planes));
        uint8_t *matrix = random_bytes(planes.size), *packed = random_bytes(planes.size),
                *again = random_bytes(planes.size);
        gb_pack_matrix(&packing, &formats[f], TILED_ROWS, TILED_COLUMNS, matrix, packed);
        const uint32_t groups = 128 / formats[f].group;
        for (uint32_t row = 0; row < TILED_ROWS; row++)
            for (uint32_t column = 0; column < TILED_COLUMNS; column++) {
                const uint32_t tile = row / 128 * BLOCKS + column / 128, fragment = row % 128 / 16;
                const uint32_t group = column % 128 / formats[f].group;
                const uint8_t *bytes = packed + planes.scales.offset + tile * 128 * groups;
                assert_int_equal(gb_get_code(matrix + row * planes.codes.row_bytes, 4, column),
                                 fragment_code_at(&formats[f], packed + tile * 8192 + fragment * 1024, 0,
                                                  row % 16, column % 128));
                assert_int_equal(
                    matrix[planes.scales.offset + row * planes.scales.row_bytes + column / formats[f].group],
                    bytes[(fragment * groups + group) * 16 + row % 8 * 2 + row % 16 / 8]);
            }
        assert_memory_equal(matrix + planes.super_scales.offset, packed + planes.super_scales.offset,
                            2 * TILED_ROWS);
        gb_unpack_matrix(&packing, &formats[f], TILED_ROWS, TILED_COLUMNS, packed, again);
        assert_memory_equal(matrix, again, TILED_ROWS * planes.codes.row_bytes);
        free(matrix);
        free(packed);
        free(again);
    }
}

static void test_what_does_not_fit(void **state) {
    (void)state;
    gb_packing packing;
    assert_false(gb_packing_interleaved(&FORMATS[0], 40, 512, &packing));
    assert_false(gb_packing_interleaved(&FORMATS[0], 48, 500, &packing));
    assert_false(gb_packing_interleaved(&FORMATS[5], 48, 510, &packing));
    assert_false(gb_packing_fragments(&FORMATS[0], 40, 512, &packing));
    assert_false(gb_packing_fragments(&FORMATS[1], 48, 96, &packing));
    assert_false(gb_packing_fragments(&FORMATS[2], 48, 512, &packing));
    assert_false(gb_packing_fragments(&FORMATS[6], 48, 512, &packing));
    assert_false(gb_packing_tiles(&FORMATS[0], 128, 512, &packing));
    assert_false(gb_packing_tiles(&FORMATS[9], 48, 512, &packing));
    assert_false(gb_packing_tiles(&FORMATS[9], 128, 480, &packing));
    assert_false(gb_packing_tiles(&FORMATS[11], 128, 512, &packing));
    assert_false(gb_packing_fragments(&FORMATS[13], 48, 512, &packing));
    assert_false(gb_packing_fragments(&FORMATS[16], 48, 512, &packing));
    assert_true(gb_packing_fragments(&FORMATS[5], 48, 96, &packing));
    assert_true(gb_packing_interleaved(&FORMATS[5], 48, 516, &packing));
    gb_packing other = packing;
    assert_true(gb_packing_equal(&packing, &other));
    other.scales.order[0] = 1;
    assert_false(gb_packing_equal(&packing, &other));
    assert_false(gb_packing_fits(&other, &FORMATS[0], 48, 512)); /* a layout of 8-bit codes for 4 bits */
    assert_false(gb_packing_fits(&(gb_packing){0}, &FORMATS[0], 48, 512));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpacking_undoes),  cmocka_unit_test(test_interleaved_order),
        cmocka_unit_test(test_fragments_order),   cmocka_unit_test(test_tiles_order),
        cmocka_unit_test(test_what_does_not_fit),
    };
    srand(7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
