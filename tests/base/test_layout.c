/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: unpacking what was packed gives it back, whatever the layout, and known layouts put codes where
 * they belong.
 */
#include "base/memory.h"
#include "tensor/format.h"
#include "tensor/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state;

static uint32_t random_below(uint32_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

/* Splits one axis of a random layout; returns the product of the sizes. */
static uint64_t split_axis(gb_layout *layout, uint8_t axis, uint32_t splits) {
    uint64_t product = 1;
    layout->parts[layout->part_count++] = (gb_layout_part){axis, 0};
    for (uint32_t i = 0; i < splits; i++) {
        uint32_t size = 1 + random_below(5);
        layout->parts[layout->part_count++] = (gb_layout_part){axis, size};
        product *= size;
    }
    return product;
}

static void shuffle_order(gb_layout *layout) {
    for (uint8_t i = 0; i < layout->part_count; i++)
        layout->order[i] = i;
    for (uint32_t i = layout->part_count - 1u; i > 0; i--) {
        uint32_t j = random_below(i + 1);
        uint8_t swapped = layout->order[i];
        layout->order[i] = layout->order[j];
        layout->order[j] = swapped;
    }
}

static void unpacking_undoes_packing(void **unused) {
    (void)unused;
    static const uint32_t widths[] = {4, 5, 6, 8, 16};
    state = 1;
    for (int round = 0; round < 500; round++) {
        uint32_t bits = widths[random_below(5)];
        gb_layout layout = {.high_nibble_first = bits == 4 && random_below(2)};
        uint64_t rows = split_axis(&layout, GB_AXIS_ROWS, random_below(4)) * (1 + random_below(3));
        uint64_t columns = split_axis(&layout, GB_AXIS_COLUMNS, random_below(4)) * 8 * (1 + random_below(2));
        shuffle_order(&layout);
        assert_true(gb_layout_fits(&layout, rows, columns, bits));
        size_t size = (size_t)(rows * columns * bits / 8);
        uint8_t *codes = gb_allocate(size, 1), *packed = gb_allocate(size, 1), *again = gb_allocate(size, 1);
        assert_true(codes && packed && again);
        for (size_t i = 0; i < size; i++)
            codes[i] = (uint8_t)random_below(256);
        gb_layout_pack(&layout, rows, columns, bits, codes, packed);
        gb_layout_unpack(&layout, rows, columns, bits, packed, again);
        assert_memory_equal(codes, again, size);
        gb_free(codes);
        gb_free(packed);
        gb_free(again);
    }
}

static void canonical_is_as_it_is(void **unused) {
    (void)unused;
    gb_layout layout = gb_layout_canonical();
    uint8_t codes[24], packed[24];
    for (uint8_t i = 0; i < 24; i++)
        codes[i] = (uint8_t)(i * 37);
    gb_layout_pack(&layout, 3, 16, 4, codes, packed);
    assert_memory_equal(codes, packed, sizeof codes);
}

/* The canonical index of the code that is number i in memory, digit by digit. */
static uint64_t canonical_index(const gb_layout *layout, uint64_t rows, uint64_t columns, uint64_t i) {
    uint64_t digit[GB_MAX_LAYOUT_PARTS], size[GB_MAX_LAYOUT_PARTS], left[2] = {rows, columns}, at[2] = {0, 0};
    for (int p = layout->part_count - 1; p >= 0; p--) {
        const gb_layout_part *part = &layout->parts[p];
        size[p] = part->size ? part->size : left[part->axis];
        left[part->axis] /= size[p];
    }
    for (int n = layout->part_count - 1; n >= 0; n--) {
        digit[layout->order[n]] = i % size[layout->order[n]];
        i /= size[layout->order[n]];
    }
    for (int p = 0; p < layout->part_count; p++)
        at[layout->parts[p].axis] = at[layout->parts[p].axis] * size[p] + digit[p];
    return at[GB_AXIS_ROWS] * columns + at[GB_AXIS_COLUMNS];
}

/* With sizes that are powers of two, codes move as words in many ways; the packed side takes some of the
 * bits. */
static void codes_are_where_the_digits_say(void **unused) {
    (void)unused;
    static const gb_layout_bits some[] = {{4, 0, 4}, {8, 0, 8}, {16, 0, 16}, {5, 0, 4}, {5, 4, 1},
                                          {6, 0, 4}, {6, 4, 2}, {6, 0, 6},   {5, 0, 5}};
    enum { ROWS = 32, COLUMNS = 64, CODES = ROWS * COLUMNS };
    state = 2;
    for (int round = 0; round < 900; round++) {
        gb_layout_bits bits = some[round % 9];
        gb_layout layout = {.part_count = 2, .parts = {{GB_AXIS_ROWS, 0}, {GB_AXIS_COLUMNS, 0}}};
        for (uint32_t left[2] = {ROWS, COLUMNS};
             random_below(8) && layout.part_count < GB_MAX_LAYOUT_PARTS;) {
            uint8_t axis = (uint8_t)random_below(2);
            uint32_t size = 1u << random_below(4);
            if (left[axis] % size == 0)
                layout.parts[layout.part_count++] = (gb_layout_part){axis, size};
            if (left[axis] % size == 0)
                left[axis] /= size;
        }
        shuffle_order(&layout);
        layout.high_nibble_first = bits.count == 4 && random_below(2);
        assert_true(gb_layout_fits(&layout, ROWS, COLUMNS, bits.count));
        static uint8_t codes[2 * CODES], packed[2 * CODES], again[2 * CODES];
        for (size_t i = 0; i < sizeof codes; i++)
            codes[i] = (uint8_t)random_below(256);
        const gb_layout_blocks block = {1, ROWS, COLUMNS, 0};
        gb_layout_pack_bits(&layout, &block, bits, codes, packed);
        memset(again, 0, sizeof again);
        gb_layout_unpack_bits(&layout, &block, bits, packed, again);
        for (uint64_t i = 0; i < CODES; i++) {
            uint64_t at = canonical_index(&layout, ROWS, COLUMNS, i);
            uint32_t mask = (1u << bits.count) - 1,
                     code = gb_get_code(codes, bits.code, at) >> bits.first & mask;
            assert_int_equal(gb_get_code(packed, bits.count, layout.high_nibble_first ? i ^ 1 : i), code);
            assert_int_equal(gb_get_code(again, bits.code, at), code << bits.first);
        }
    }
}

/* In steps of 8 columns, 16 rows after one another. */
static void interleaves_rows(void **unused) {
    (void)unused;
    enum { ROWS = 32, COLUMNS = 24 };
    gb_layout layout = gb_layout_interleaved(16, 8);
    static uint8_t codes[ROWS * COLUMNS], packed[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        codes[i] = (uint8_t)(i * 7 + i / 256);
    gb_layout_pack(&layout, ROWS, COLUMNS, 8, codes, packed);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < COLUMNS; column++) {
            size_t at = ((row / 16 * (COLUMNS / 8) + column / 8) * 16 + row % 16) * 8 + column % 8;
            assert_int_equal(packed[at], codes[row * COLUMNS + column]);
        }
}

/* GGUF's Q4_0: weight i < 16 of a block in the low nibble of byte i, weight 16 + i in the high one. */
static void holds_the_nibbles_of_gguf(void **unused) {
    (void)unused;
    gb_layout layout = {
        .part_count = 4,
        .parts = {{GB_AXIS_ROWS, 0}, {GB_AXIS_COLUMNS, 0}, {GB_AXIS_COLUMNS, 2}, {GB_AXIS_COLUMNS, 16}},
        .order = {0, 1, 3, 2}};
    uint8_t codes[32], packed[32];
    for (uint8_t i = 0; i < 32; i++)
        codes[i] = (uint8_t)(i * 61);
    gb_layout_pack(&layout, 1, 64, 4, codes, packed);
    for (uint64_t i = 0; i < 64; i++) {
        uint8_t byte = packed[i / 32 * 16 + i % 16];
        assert_int_equal(i % 32 < 16 ? byte & 15 : byte >> 4, gb_get_code(codes, 4, i));
    }
}

static void misfits_are_refused(void **unused) {
    (void)unused;
    gb_layout layout = gb_layout_interleaved(16, 8);
    assert_true(gb_layout_fits(&layout, 32, 16, 4));
    assert_false(gb_layout_fits(&layout, 24, 16, 4)); /* 16 does not divide the rows */
    assert_false(gb_layout_fits(&layout, 32, 20, 4));
    assert_false(gb_layout_fits(&layout, 32, 16, 3));
    layout.order[3] = 0; /* named twice */
    assert_false(gb_layout_fits(&layout, 32, 16, 4));
    layout = gb_layout_interleaved(16, 8);
    layout.high_nibble_first = true;
    assert_false(gb_layout_fits(&layout, 32, 16, 8));
    layout = gb_layout_canonical();
    assert_false(gb_layout_fits(&layout, 2, 7, 4)); /* a row ends within a byte */
    layout.parts[1].axis = GB_AXIS_ROWS;
    assert_false(gb_layout_fits(&layout, 2, 8, 4));
    layout.part_count = 0;
    assert_false(gb_layout_fits(&layout, 2, 8, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacking_undoes_packing), cmocka_unit_test(canonical_is_as_it_is),
        cmocka_unit_test(interleaves_rows),         cmocka_unit_test(holds_the_nibbles_of_gguf),
        cmocka_unit_test(misfits_are_refused),      cmocka_unit_test(codes_are_where_the_digits_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
