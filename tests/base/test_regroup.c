/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in smaller groups hold the same numbers.
 */
#include "tensor/convert.h"
#include "tensor/regroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const gb_format BY_ROW = {.kind = GB_FORMAT_ONE_LEVEL, .bits = 8, .scale = GB_F16};
static const gb_format BY_ROW_BF16 = {.kind = GB_FORMAT_ONE_LEVEL, .bits = 8, .scale = GB_BF16};

static gb_format with(gb_format format, uint32_t group, bool has_bias) {
    format.group = group;
    format.has_bias = has_bias;
    return format;
}

static uint8_t *make_planes(const gb_format *format, uint64_t rows, uint64_t columns, gb_planes *planes) {
    assert_true(gb_format_planes(format, rows, columns, planes));
    uint8_t *bytes = calloc(1, (size_t)planes->size);
    assert_non_null(bytes);
    return bytes;
}

/* Any codes; scales and biases of any finite bits whose exponent is small. */
static uint8_t *draw_matrix(const gb_format *format, uint64_t rows, uint64_t columns, gb_planes *planes) {
    static uint32_t state = 7;
    uint8_t *bytes = make_planes(format, rows, columns, planes);
    for (uint64_t i = 0; i < planes->size; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
    uint64_t groups = columns / planes->group;
    for (uint64_t i = 0; i < rows * groups; i++) { /* the second byte has sign and exponent */
        bytes[planes->scales.offset + 2 * i + 1] &= 0xbf;
        if (format->has_bias)
            bytes[planes->biases.offset + 2 * i + 1] &= 0xbf;
    }
    return bytes;
}

static void assert_same_values(gb_format from, gb_format to, uint64_t rows, uint64_t columns) {
    gb_planes before, after;
    uint8_t *matrix = draw_matrix(&from, rows, columns, &before);
    uint8_t *regrouped = make_planes(&to, rows, columns, &after);
    float old[512], new[512];
    assert_true(columns <= 512 && gb_can_regroup(&from, &to, columns));
    assert_true(gb_regroup(&from, &to, rows, columns, matrix, regrouped));
    for (uint64_t row = 0; row < rows; row++) {
        gb_format_dequantize(&from, &before, matrix, row, 0, columns, old);
        gb_format_dequantize(&to, &after, regrouped, row, 0, columns, new);
        for (uint64_t i = 0; i < columns; i++)
            assert_true(old[i] == new[i]);
    }
    free(matrix);
    free(regrouped);
}

static void rows_become_groups(void **state) {
    (void)state;
    static const uint32_t groups[] = {32, 64, 128};
    for (size_t i = 0; i < 3; i++)
        for (int has_bias = 0; has_bias < 2; has_bias++) {
            assert_same_values(BY_ROW, with(BY_ROW, groups[i], has_bias), 37, 384);
            assert_same_values(BY_ROW_BF16, with(BY_ROW_BF16, groups[i], has_bias), 37, 384);
        }
    assert_same_values(with(BY_ROW, 0, true), with(BY_ROW, 64, true), 5, 192);
}

static void groups_become_smaller(void **state) {
    (void)state;
    static const uint8_t bits[] = {4, 5, 6, 8};
    for (size_t i = 0; i < 4; i++) {
        gb_format format = {.kind = GB_FORMAT_ONE_LEVEL, .bits = bits[i], .scale = GB_F16, .group = 128};
        assert_same_values(format, with(format, 32, false), 9, 512);
        assert_same_values(format, with(format, 64, true), 9, 512);
        assert_same_values(with(format, 128, true), with(format, 32, true), 9, 512);
        assert_same_values(format, format, 9, 256);
    }
}

static void knows_what_cannot_be(void **state) {
    (void)state;
    gb_format of64 = with(BY_ROW, 64, false), of128 = with(BY_ROW, 128, false);
    gb_format narrow = {.kind = GB_FORMAT_ONE_LEVEL, .bits = 4, .scale = GB_F16, .group = 64};
    gb_format two_level = {.kind = GB_FORMAT_TWO_LEVEL,
                           .bits = 4,
                           .has_bias = true,
                           .scale_bits = 6,
                           .scale = GB_F16,
                           .group = 32};
    gb_format dense = {0}, biased = with(BY_ROW, 0, true);
    assert_true(gb_can_regroup(&BY_ROW, &of64, 128));
    assert_false(gb_can_regroup(&BY_ROW, &of64, 96));       /* the group does not divide the row */
    assert_false(gb_can_regroup(&of64, &of128, 256));       /* groups would have to be merged */
    assert_false(gb_can_regroup(&of64, &BY_ROW, 256));      /* likewise */
    assert_false(gb_can_regroup(&biased, &of64, 128));      /* the bias would be lost */
    assert_false(gb_can_regroup(&BY_ROW, &narrow, 128));    /* other codes */
    assert_false(gb_can_regroup(&BY_ROW_BF16, &of64, 128)); /* other scales */
    assert_false(gb_can_regroup(&two_level, &narrow, 256));
    assert_false(gb_can_regroup(&dense, &of64, 256));
}

/* 128 times the scale has no place in the format, or the product with a large code none in a float. */
static void refuses_a_scale_that_is_too_large(void **state) {
    (void)state;
    static const struct {
        const gb_format *format;
        uint16_t scale;
        bool fits;
    } cases[] = {{&BY_ROW, 0x5fff, true},      /* nearly 512 */
                 {&BY_ROW, 0x6000, false},     /* 512 */
                 {&BY_ROW, 0x0001, true},      /* the smallest */
                 {&BY_ROW_BF16, 0x7b7f, true}, /* 2^120 and nearly as much again */
                 {&BY_ROW_BF16, 0x7b80, false},
                 /* 2^120 */};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_format to = with(*cases[i].format, 32, true);
        gb_planes before, after;
        uint8_t *matrix = make_planes(cases[i].format, 1, 32, &before);
        uint8_t *regrouped = make_planes(&to, 1, 32, &after);
        memcpy(matrix + before.scales.offset, &cases[i].scale, sizeof cases[i].scale);
        assert_int_equal(gb_regroup(cases[i].format, &to, 1, 32, matrix, regrouped), cases[i].fits);
        free(matrix);
        free(regrouped);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_groups),
        cmocka_unit_test(groups_become_smaller),
        cmocka_unit_test(knows_what_cannot_be),
        cmocka_unit_test(refuses_a_scale_that_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
