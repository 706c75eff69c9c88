/* SPDX-License-Identifier: Apache-2.0
 *
 * Weight formats: which there are, where their planes lie, and what they dequantize to.
 */
#include "base/memory.h"
#include "tensor/convert.h"
#include "tensor/format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ONE(code_bits, bias, dtype, size)                                                                    \
    {                                                                                                        \
        .kind = GB_FORMAT_ONE_LEVEL, .bits = (code_bits), .has_bias = (bias), .scale = (dtype),              \
        .group = (size)                                                                                      \
    }
#define TWO(code_bits, bias, sub_bits, size)                                                                 \
    {                                                                                                        \
        .kind = GB_FORMAT_TWO_LEVEL, .bits = (code_bits), .has_bias = (bias), .scale_bits = (sub_bits),      \
        .scale = GB_F16, .group = (size)                                                                     \
    }
#define PROGRESSIVE(code_bits, size)                                                                         \
    { .kind = GB_FORMAT_PROGRESSIVE, .bits = (code_bits), .scale_bits = 8, .scale = GB_F16, .group = (size) }

#define BOOK(kind_of, code_bits, sub_bits, dtype, size, code_book)                                           \
    {                                                                                                        \
        .kind = (kind_of), .bits = (code_bits), .scale_bits = (sub_bits), .scale = (dtype), .group = (size), \
        .book = (code_book)                                                                                  \
    }

static const struct format_case {
    gb_format format;
    const char *text;
    double bits_per_weight; /* in rows of 512 */
} cases[] = {
    {ONE(4, true, GB_BF16, 64), "int4 g64 bf16+bias", 4.5},
    {ONE(4, true, GB_F16, 32), "int4 g32 f16+bias", 5.0},
    {ONE(4, false, GB_F16, 32), "int4 g32 f16", 4.5},
    {ONE(5, false, GB_F16, 32), "int5 g32 f16", 5.5},
    {ONE(5, true, GB_F16, 32), "int5 g32 f16+bias", 6.0},
    {ONE(6, true, GB_BF16, 128), "int6 g128 bf16+bias", 6.25},
    {ONE(8, false, GB_F16, 32), "int8 g32 f16", 8.5},
    {ONE(8, true, GB_F16, 0), "int8 row f16+bias", 8.0625},
    {TWO(4, true, 6, 32), "int4 g32 f16x6+bias", 4.5},
    {TWO(5, true, 6, 32), "int5 g32 f16x6+bias", 5.5},
    {TWO(6, false, 8, 16), "int6 g16 f16x8", 6.5625},
    {ONE(2, false, GB_F16, 128), "int2 g128 f16", 2.125},
    {TWO(2, true, 4, 16), "int2 g16 f16x4+bias", 2.625},
    {TWO(3, false, 8, 16), "int3 g16 f16x8", 3.5625},
    {BOOK(GB_FORMAT_ONE_LEVEL, 4, 0, GB_BF16, 32, GB_BOOK_E2M1), "e2m1 g32 bf16", 4.5},
    {BOOK(GB_FORMAT_ONE_LEVEL, 4, 0, GB_BF16, 16, GB_BOOK_E2M1), "e2m1 g16 bf16", 5.0},
    {BOOK(GB_FORMAT_ONE_LEVEL, 4, 0, GB_F16, 32, GB_BOOK_IQ4), "iq4 g32 f16", 4.5},
    {BOOK(GB_FORMAT_TWO_LEVEL, 4, 8, GB_F16, 32, GB_BOOK_IQ4), "iq4 g32 f16x8", 4.3125},
    {BOOK(GB_FORMAT_TWO_LEVEL, 4, 8, GB_F16, 32, GB_BOOK_IQ3XXS), "iq3xxs g32 f16x8", 4.3125},
    {BOOK(GB_FORMAT_TWO_LEVEL, 4, 8, GB_F16, 32, GB_BOOK_IQ3S), "iq3s g32 f16x8", 4.3125},
    {BOOK(GB_FORMAT_TWO_LEVEL, 3, 8, GB_F16, 16, GB_BOOK_IQ2), "iq2 g16 f16x8", 3.5625},
    {BOOK(GB_FORMAT_TWO_LEVEL, 3, 8, GB_F16, 32, GB_BOOK_IQ1), "iq1 g32 f16x8", 3.3125},
    {PROGRESSIVE(4, 32), "int4 g32 progressive", 4.28125},
    {PROGRESSIVE(4, 64), "int4 g64 progressive", 4.15625},
    {PROGRESSIVE(5, 32), "int5 g32 progressive", 5.28125},
    {PROGRESSIVE(6, 128), "int6 g128 progressive", 6.09375},
};
enum { CASES = sizeof cases / sizeof *cases };

static void texts_and_sizes(void **unused) {
    (void)unused;
    for (size_t i = 0; i < CASES; i++) {
        char text[GB_FORMAT_TEXT];
        gb_planes planes;
        assert_true(gb_format_valid(&cases[i].format));
        assert_string_equal(gb_format_text(&cases[i].format, text), cases[i].text);
        assert_true(gb_format_bits_per_weight(&cases[i].format, 512) == cases[i].bits_per_weight);
        assert_true(gb_format_planes(&cases[i].format, 64, 512, &planes));
        /* 64 rows fill their planes to a multiple of the alignment */
        assert_int_equal(planes.size, (uint64_t)(64 * 512 * cases[i].bits_per_weight / 8));
    }
}

static void other_formats_are_invalid(void **unused) {
    (void)unused;
    static const gb_format bad[] = {
        ONE(1, true, GB_F16, 32),
        ONE(7, true, GB_F16, 32),
        ONE(16, true, GB_F16, 32),
        ONE(4, true, GB_F32, 32),
        ONE(4, true, GB_F16, 16),
        ONE(4, true, GB_F16, 0),
        ONE(8, true, GB_F16, 256),
        TWO(4, true, 6, 64),
        TWO(4, true, 5, 32),
        BOOK(GB_FORMAT_DENSE, 0, 0, GB_DTYPE_NONE, 0, GB_BOOK_E2M1),
        BOOK(GB_FORMAT_ONE_LEVEL, 3, 0, GB_F16, 32, GB_BOOK_E2M1),
        BOOK(GB_FORMAT_ONE_LEVEL, 8, 0, GB_F16, 0, GB_BOOK_E2M1),
        BOOK(GB_FORMAT_ONE_LEVEL, 4, 0, GB_F16, 32, GB_BOOK_IQ3XXS), /* its unit is not 1 */
        BOOK(GB_FORMAT_TWO_LEVEL, 4, 8, GB_F16, 32, GB_BOOK_IQ1),
        BOOK(GB_FORMAT_TWO_LEVEL, 4, 8, GB_F16, 32, GB_BOOK_COUNT),
        BOOK(GB_FORMAT_PROGRESSIVE, 4, 8, GB_F16, 32, GB_BOOK_IQ4),
        {.kind = GB_FORMAT_ONE_LEVEL,
         .bits = 4,
         .has_bias = true,
         .scale = GB_F16,
         .group = 32,
         .book = GB_BOOK_IQ4},
        PROGRESSIVE(3, 32),
        TWO(6, true, 8, 16),
        {.kind = GB_FORMAT_DENSE, .bits = 4},
        PROGRESSIVE(8, 32),
        PROGRESSIVE(4, 16),
        PROGRESSIVE(4, 0),
        {.kind = GB_FORMAT_PROGRESSIVE, .bits = 4, .scale_bits = 8, .scale = GB_BF16, .group = 32},
        {.kind = GB_FORMAT_PROGRESSIVE,
         .bits = 4,
         .scale_bits = 8,
         .has_bias = true,
         .scale = GB_F16,
         .group = 32},
        {.kind = GB_FORMAT_PROGRESSIVE, .bits = 4, .scale = GB_F16, .group = 32},
        {.kind = (gb_format_kind)4},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (gb_format_valid(&bad[i]))
            fail_msg("format %zu is taken", i);
    assert_true(gb_format_valid(&(gb_format){0}));
}

static void groups_must_divide(void **unused) {
    (void)unused;
    assert_true(gb_format_fits(&cases[0].format, 128));
    assert_false(gb_format_fits(&cases[0].format, 96));
    assert_true(gb_format_fits(&cases[7].format, 7));
    assert_false(gb_format_fits(&cases[8].format, 128));
    assert_true(gb_format_fits(&cases[8].format, 256));
}

static void sizes_do_not_overflow(void **unused) {
    (void)unused;
    gb_planes planes;
    assert_false(gb_format_planes(&cases[0].format, UINT64_MAX / 2, 64, &planes));
    assert_false(gb_format_planes(&cases[0].format, 64, UINT64_MAX / 4 * 2, &planes));
    assert_true(gb_format_planes(&cases[0].format, UINT64_C(1) << 31, UINT64_C(1) << 20, &planes));
}

/* ---- Values -------------------------------------------------------------------------------------------- */

static uint32_t random_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static uint16_t random_half(uint64_t *state, gb_dtype dtype) {
    float value = (float)(random_bits(state) >> 8) * 0x1p-23f - 1.0f;
    return dtype == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
}

static void fill_halves(uint64_t *state, uint8_t *bytes, uint64_t count, gb_dtype dtype) {
    for (uint64_t i = 0; i < count; i++)
        memcpy(bytes + 2 * i, &(uint16_t){random_half(state, dtype)}, 2);
}

/* A matrix of random codes, and scales that are numbers. */
static uint8_t *random_matrix(uint64_t *state, const gb_format *format, const gb_planes *planes,
                              uint64_t rows) {
    uint8_t *data = gb_allocate((size_t)planes->size, 1);
    assert_non_null(data);
    for (uint64_t i = 0; i < planes->size; i++)
        data[i] = (uint8_t)random_bits(state);
    if (format->kind == GB_FORMAT_ONE_LEVEL) {
        fill_halves(state, data + planes->scales.offset, rows * planes->scales.row_bytes / 2, format->scale);
        fill_halves(state, data + planes->biases.offset, rows * planes->biases.row_bytes / 2, format->scale);
    } else {
        fill_halves(state, data + planes->super_scales.offset, rows * planes->super_scales.row_bytes / 2,
                    GB_F16);
        fill_halves(state, data + planes->super_biases.offset, rows * planes->super_biases.row_bytes / 2,
                    GB_F16);
    }
    return data;
}

/* Number i of a plane's row whose numbers have that many bits, bit by bit. */
static uint32_t number_at(const gb_plane *plane, const uint8_t *data, uint64_t row, uint32_t bits,
                          uint64_t i) {
    uint32_t number = 0;
    for (uint32_t b = 0; b < bits; b++) {
        uint64_t bit = i * bits + b;
        uint32_t byte = data[plane->offset + row * plane->row_bytes + bit / 8];
        number |= (byte >> (bit % 8) & 1u) << b;
    }
    return number;
}

static double half_at(const gb_plane *plane, const uint8_t *data, uint64_t row, uint64_t i, gb_dtype dtype) {
    uint16_t half = (uint16_t)number_at(plane, data, row, 16, i);
    return (double)(dtype == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half));
}

/* The books as their formats' own documents have them. */
static double integer_of(gb_code_book book, int q) {
    static const int magnitudes[] = {0, 1, 2, 3, 4, 6, 8, 12}, quarters[] = {4, 12, 20, 28, 36, 44, 52, 62};
    static const int iq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static const int iq2[] = {8, 25, 43, 0, -8, -25, -43, 0}, iq1[] = {-7, 1, 9, 0, -9, -1, 7, 0};
    switch (book) {
    case GB_BOOK_E2M1:
        return q < 8 ? magnitudes[q] : -magnitudes[q - 8];
    case GB_BOOK_IQ4:
        return iq4[q];
    case GB_BOOK_IQ3XXS:
        return (q < 8 ? quarters[q] : -quarters[q - 8]) / 4.0;
    case GB_BOOK_IQ3S:
        return 2 * q - 15;
    default:
        return (book == GB_BOOK_IQ2 ? iq2[q] : iq1[q]) / 8.0;
    }
}

/* The definition in the header, in double. */
static double defined_weight(const gb_format *f, const gb_planes *p, const uint8_t *data, uint64_t row,
                             uint64_t i) {
    uint64_t group = i / p->group;
    double q = number_at(&p->codes, data, row, f->bits, i), scale, bias;
    if (f->kind == GB_FORMAT_ONE_LEVEL) {
        scale = half_at(&p->scales, data, row, group, f->scale);
        if (f->book != GB_BOOK_NONE)
            return scale * integer_of(f->book, (int)q);
        bias = f->has_bias ? half_at(&p->biases, data, row, group, f->scale) : -scale * exp2(f->bits - 1);
        return scale * q + bias;
    }
    double s = number_at(&p->scales, data, row, f->scale_bits, group);
    if (f->kind == GB_FORMAT_PROGRESSIVE) {
        const double scales = exp2(8 - f->bits), zero = floor(s / scales);
        return half_at(&p->super_scales, data, row, 0, GB_F16) * ((q - zero) * (s - zero * scales + 1));
    }
    if (f->scale_bits == 8 && s > 127)
        s -= 256;
    scale = half_at(&p->super_scales, data, row, i / 256, GB_F16) * s;
    if (f->book != GB_BOOK_NONE)
        return scale * integer_of(f->book, (int)q);
    bias = f->has_bias ? -half_at(&p->super_biases, data, row, i / 256, GB_F16) *
                             number_at(&p->biases, data, row, f->scale_bits, group)
                       : -scale * exp2(f->bits - 1);
    return scale * q + bias;
}

static void dequantizes_as_defined(void **unused) {
    (void)unused;
    enum { ROWS = 3, COLUMNS = 512 };
    uint64_t state = 9;
    float values[COLUMNS], part[COLUMNS];
    for (size_t c = 0; c < CASES; c++) {
        gb_planes planes;
        assert_true(gb_format_planes(&cases[c].format, ROWS, COLUMNS, &planes));
        uint8_t *data = random_matrix(&state, &cases[c].format, &planes, ROWS);
        for (uint64_t row = 0; row < ROWS; row++) {
            gb_format_dequantize(&cases[c].format, &planes, data, row, 0, COLUMNS, values);
            for (uint64_t i = 0; i < COLUMNS; i++) {
                double expected = defined_weight(&cases[c].format, &planes, data, row, i);
                if (!(fabs((double)values[i] - expected) <= 1e-6 * fabs(expected) + 1e-5))
                    fail_msg("%s: weight %d is %g, expected %g", cases[c].text, (int)i, (double)values[i],
                             expected);
            }
            gb_format_dequantize(&cases[c].format, &planes, data, row, 37, 300, part);
            assert_memory_equal(part, values + 37, 300 * sizeof *part);
        }
        gb_free(data);
    }
}

/* Every byte is one of what the header says, and those are refused with which a weight would leave 8 bits. */
static void group_bytes(void **unused) {
    (void)unused;
    for (uint32_t bits = 4; bits <= 6; bits++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            const gb_group_integers group = gb_get_group_integers(bits, (uint8_t)byte);
            const int32_t highest = (1 << bits) - 1, zero = (int32_t)group.zero, scale = (int32_t)group.scale;
            assert_int_equal(gb_put_group_integers(bits, group), byte);
            const bool fits = zero * scale <= 127 && (highest - zero) * scale <= 127;
            const uint8_t bytes[] = {0, (uint8_t)byte, 0};
            assert_int_equal(gb_check_group_bytes(bits, bytes, 3), fits ? 3 : 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_sizes),        cmocka_unit_test(other_formats_are_invalid),
        cmocka_unit_test(groups_must_divide),     cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(dequantizes_as_defined), cmocka_unit_test(group_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
