/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantizers: error bounds, exact cases, and errors no larger than those of mlx's quantizer on the same
 * weights (the numbers are what tests/data/quantize/make_goldens.py prints).
 */
#include "base/memory.h"
#include "export/quantize/quantizer.h"
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 32, COLUMNS = 512 };

static float weights[ROWS][COLUMNS];

/* Roughly normal: sums of four uniform numbers. */
static int make_weights(void **unused) {
    (void)unused;
    uint64_t state = 1;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float total = 0;
        for (int j = 0; j < 4; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            total += (float)(state >> 40) * 0x1p-24f - 0.5f;
        }
        weights[i / COLUMNS][i % COLUMNS] = total * 0.04f;
    }
    return 0;
}

/* Quantizes one row and brings it back. */
static bool round_trip(gb_quantize_method method, const gb_format *format, const float *values, float *back) {
    gb_planes planes;
    assert_true(gb_format_planes(format, 1, COLUMNS, &planes));
    uint8_t *data = gb_allocate_aligned((size_t)planes.size, 1);
    assert_non_null(data);
    const gb_quantized_row row = gb_quantized_row_in(format, &planes, 0, data, data, 0);
    bool quantized = gb_quantize_row(method, format, values, COLUMNS, &row);
    if (quantized)
        gb_format_dequantize(format, &planes, data, 0, 0, COLUMNS, back);
    gb_free(data);
    return quantized;
}

static double relative_error(gb_quantize_method method, const gb_format *format) {
    double error = 0, norm = 0;
    float back[COLUMNS];
    for (int r = 0; r < ROWS; r++) {
        assert_true(round_trip(method, format, weights[r], back));
        for (int i = 0; i < COLUMNS; i++) {
            error += pow((double)back[i] - (double)weights[r][i], 2);
            norm += pow((double)weights[r][i], 2);
        }
    }
    return sqrt(error / norm);
}

static gb_format one_level(uint32_t bits, bool has_bias, gb_dtype dtype, uint32_t group) {
    return (gb_format){.kind = GB_FORMAT_ONE_LEVEL,
                       .bits = (uint8_t)bits,
                       .has_bias = has_bias,
                       .scale = dtype,
                       .group = group};
}

static const uint32_t widths[] = {4, 5, 6, 8}, groups[] = {32, 64, 128};

/* HQQ always beats it. The plain method and mlx's differ by chance where groups are so long that what mlx
 * does for zero hardly counts. */
static void no_worse_than_mlx(void **unused) {
    (void)unused;
    static const double mlx[2][4][3] = {{{0.077565, 0.085909, 0.092629},
                                         {0.037296, 0.041784, 0.045090},
                                         {0.018566, 0.020454, 0.022150},
                                         {0.004616, 0.005094, 0.005494}},
                                        {{0.077619, 0.085920, 0.092724},
                                         {0.037473, 0.041974, 0.045222},
                                         {0.018959, 0.020752, 0.022407},
                                         {0.005953, 0.006290, 0.006583}}};
    static const gb_dtype dtypes[] = {GB_F16, GB_BF16};
    for (int d = 0; d < 2; d++)
        for (int b = 0; b < 4; b++)
            for (int g = 0; g < 3; g++) {
                gb_format format = one_level(widths[b], true, dtypes[d], groups[g]);
                double plain = relative_error(GB_METHOD_MIN_MAX, &format);
                double hqq = relative_error(GB_METHOD_HQQ, &format);
                char text[GB_FORMAT_TEXT];
                print_message("%-20s  min-max %.6f  hqq %.6f  mlx %.6f\n", gb_format_text(&format, text),
                              plain, hqq, mlx[d][b][g]);
                if (plain > 1.002 * mlx[d][b][g] || hqq > mlx[d][b][g] || hqq > plain)
                    fail_msg("%s is worse", text);
            }
}

static gb_format progressive(uint32_t bits, uint32_t group) {
    return (gb_format){.kind = GB_FORMAT_PROGRESSIVE,
                       .bits = (uint8_t)bits,
                       .scale_bits = 8,
                       .scale = GB_F16,
                       .group = group};
}

/* Groups of 32 are better than groups of 64 with a float16 scale and bias each, which are larger; groups of
 * 64 and 128 are little worse than such groups. */
static void integer_scales_cost_little(void **unused) {
    (void)unused;
    static const double most[3] = {0.95, 1.06, 1.06};
    for (int g = 0; g < 3; g++) {
        const gb_format integer = progressive(4, groups[g]),
                        affine = one_level(4, true, GB_F16, g < 2 ? 64 : 128);
        const double found = relative_error(GB_METHOD_SEARCH, &integer);
        const double hqq = relative_error(GB_METHOD_HQQ, &affine);
        print_message("int4 g%u: search %.6f, hqq of groups of %u %.6f\n", groups[g], found, affine.group,
                      hqq);
        assert_true(found < most[g] * hqq);
    }
    double last = 1;
    for (uint32_t bits = 4; bits <= 6; bits++) {
        const gb_format format = progressive(bits, 32);
        const double found = relative_error(GB_METHOD_SEARCH, &format);
        print_message("int%u g32: %.6f\n", bits, found);
        assert_true(found < 0.9 * last); /* 6 bits have but four scales */
        last = found;
    }
}

/* Half a step, and what rounding the scale and the bias to 16 bits adds. */
static void errors_are_bounded(void **unused) {
    (void)unused;
    float back[COLUMNS];
    for (int b = 0; b < 4; b++)
        for (int bias = 0; bias < 2; bias++) {
            gb_format format = one_level(widths[b], bias, GB_F16, 64);
            float steps = (float)((1u << widths[b]) - 1u);
            assert_true(round_trip(GB_METHOD_MIN_MAX, &format, weights[0], back));
            for (int i = 0; i < COLUMNS; i++) {
                float low = 0, high = 0;
                for (int j = i / 64 * 64; j < i / 64 * 64 + 64; j++) {
                    low = fminf(low, weights[0][j]);
                    high = fmaxf(high, weights[0][j]);
                }
                float range = bias ? high - low : 2 * fmaxf(-low, high);
                float step = range / steps;
                /* without a bias the last code above the center is one step short of the range */
                float bound = (bias ? 0.5f : 1.0f) * step * 1.01f + range * 0x1p-10f;
                if (fabsf(back[i] - weights[0][i]) > bound)
                    fail_msg("%u bits: %g became %g", widths[b], (double)weights[0][i], (double)back[i]);
            }
        }
}

static void exact_where_it_can_be(void **unused) {
    (void)unused;
    float values[COLUMNS] = {0}, back[COLUMNS];
    gb_format format = one_level(4, true, GB_F16, 32), row = one_level(8, false, GB_F16, 0);
    assert_true(round_trip(GB_METHOD_HQQ, &format, values, back));
    assert_memory_equal(back, values, sizeof values); /* zeros */
    for (int i = 0; i < COLUMNS; i++)
        values[i] = 0.375f;
    assert_true(round_trip(GB_METHOD_HQQ, &format, values, back));
    assert_memory_equal(back, values, sizeof values); /* all the same */
    for (int i = 0; i < COLUMNS; i++)
        values[i] = (float)(i % 16 * 3 - 20) * 0.25f;
    assert_true(round_trip(GB_METHOD_MIN_MAX, &format, values, back));
    assert_memory_equal(back, values, sizeof values); /* sixteen even steps */
    for (int i = 0; i < COLUMNS; i++)
        values[i] = (float)(i % 256 - 128) * 0.5f;
    assert_true(round_trip(GB_METHOD_MIN_MAX, &row, values, back));
    assert_memory_equal(back, values, sizeof values); /* 256 steps around zero */
    const gb_format integer = progressive(4, 32);
    memset(values, 0, sizeof values);
    assert_true(round_trip(GB_METHOD_SEARCH, &integer, values, back));
    assert_memory_equal(back, values, sizeof values);
}

static void refuses_what_is_no_number(void **unused) {
    (void)unused;
    static const float bad[] = {INFINITY, -INFINITY, NAN, 1e38f};
    float values[COLUMNS], back[COLUMNS];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int bias = 0; bias < 2; bias++) {
            gb_format format = one_level(4, bias, GB_F16, 64);
            memcpy(values, weights[0], sizeof values);
            values[77] = bad[i];
            assert_false(round_trip(GB_METHOD_MIN_MAX, &format, values, back));
            format = progressive(4, 64);
            assert_false(round_trip(GB_METHOD_SEARCH, &format, values, back));
        }
}

/* Whatever the numbers, all of a group's codes stand for integers of 8 bits. */
static void groups_stay_within_8_bits(void **unused) {
    (void)unused;
    static const float shifts[] = {0, 1, -1, 0.05f, 30};
    float values[COLUMNS];
    for (uint32_t bits = 4; bits <= 6; bits++)
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++)
            for (int r = 0; r < ROWS; r++) {
                const gb_format format = progressive(bits, 32);
                gb_planes planes;
                assert_true(gb_format_planes(&format, 1, COLUMNS, &planes));
                uint8_t *data = gb_allocate_aligned((size_t)planes.size, 1);
                assert_non_null(data);
                for (int i = 0; i < COLUMNS;
                     i++) /* every third group is of one sign, some have one outlier */
                    values[i] = weights[r][i] * (i % 200 == 7 ? 50 : 1) + (i / 32 % 3 == 0 ? shifts[s] : 0);
                const gb_quantized_row row = gb_quantized_row_in(&format, &planes, 0, data, data, 0);
                assert_true(gb_quantize_row(GB_METHOD_SEARCH, &format, values, COLUMNS, &row));
                assert_int_equal(gb_check_group_bytes(bits, row.group_bytes, COLUMNS / 32), COLUMNS / 32);
                gb_free(data);
            }
}

/* Products of rotated rows are those of the rows. */
static void rotation_keeps_products(void **unused) {
    (void)unused;
    float a[COLUMNS], b[COLUMNS];
    for (uint32_t rotation = 2; rotation <= 256; rotation *= 2) {
        double expected = 0, found = 0, squares = 0;
        memcpy(a, weights[0], sizeof a);
        memcpy(b, weights[1], sizeof b);
        gb_rotate_row(a, COLUMNS, rotation);
        gb_rotate_row(b, COLUMNS, rotation);
        for (int i = 0; i < COLUMNS; i++) {
            expected += (double)weights[0][i] * (double)weights[1][i];
            found += (double)a[i] * (double)b[i];
            squares += (double)weights[0][i] * (double)weights[0][i];
        }
        assert_true(fabs(found - expected) < 1e-6 * squares && memcmp(a, weights[0], sizeof a) != 0);
    }
}

static void methods_know_their_formats(void **unused) {
    (void)unused;
    gb_format row = one_level(8, true, GB_F16, 0), plain = one_level(4, false, GB_F16, 64);
    gb_format two = {.kind = GB_FORMAT_TWO_LEVEL, .bits = 4, .scale_bits = 6, .scale = GB_F16, .group = 32};
    assert_true(gb_can_quantize(GB_METHOD_MIN_MAX, &row));
    assert_false(gb_can_quantize(GB_METHOD_HQQ, &row));
    assert_false(gb_can_quantize(GB_METHOD_HQQ, &plain));
    assert_false(gb_can_quantize(GB_METHOD_MIN_MAX, &two));
    const gb_format integer = progressive(4, 32);
    assert_true(gb_can_quantize(GB_METHOD_SEARCH, &integer));
    assert_false(gb_can_quantize(GB_METHOD_HQQ, &integer));
    assert_false(gb_can_quantize(GB_METHOD_SEARCH, &plain));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_worse_than_mlx),          cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(exact_where_it_can_be),      cmocka_unit_test(refuses_what_is_no_number),
        cmocka_unit_test(methods_know_their_formats), cmocka_unit_test(integer_scales_cost_little),
        cmocka_unit_test(groups_stay_within_8_bits),  cmocka_unit_test(rotation_keeps_products),
    };
    return cmocka_run_group_tests(tests, make_weights, NULL);
}
