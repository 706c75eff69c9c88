/* SPDX-License-Identifier: Apache-2.0
 *
 * Random quantized matrices of every kind of format.
 */
#ifndef GUMBEL_TESTS_CPU_RANDOM_MATRIX_H
#define GUMBEL_TESTS_CPU_RANDOM_MATRIX_H

#include "cpu/kernel_check.h"

static const gb_format formats[] = {
    {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0},
    {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 32, 0},
    {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 128, 0},
    {GB_FORMAT_ONE_LEVEL, 5, true, 0, GB_BF16, 32, 0},
    {GB_FORMAT_ONE_LEVEL, 5, false, 0, GB_F16, 64, 0},
    {GB_FORMAT_ONE_LEVEL, 6, true, 0, GB_F16, 128, 0},
    {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 32, 0},
    {GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 64, 0},
    {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0},
    {GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_F16, 0, 0},
    {GB_FORMAT_TWO_LEVEL, 4, true, 6, GB_F16, 32, 0},
    {GB_FORMAT_TWO_LEVEL, 5, true, 6, GB_F16, 32, 0},
    {GB_FORMAT_TWO_LEVEL, 6, false, 8, GB_F16, 16, 0},
    {GB_FORMAT_ONE_LEVEL, 2, false, 0, GB_F16, 128, 0},
    {GB_FORMAT_TWO_LEVEL, 2, true, 4, GB_F16, 16, 0},
    {GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 16, 0},
    {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 32, GB_BOOK_E2M1},
    {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 16, GB_BOOK_E2M1},
    {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, GB_BOOK_IQ4},
    {GB_FORMAT_TWO_LEVEL, 4, false, 8, GB_F16, 32, GB_BOOK_IQ4},
    {GB_FORMAT_TWO_LEVEL, 4, false, 8, GB_F16, 32, GB_BOOK_IQ3XXS},
    {GB_FORMAT_TWO_LEVEL, 4, false, 8, GB_F16, 32, GB_BOOK_IQ3S},
    {GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 16, GB_BOOK_IQ2},
    {GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 32, GB_BOOK_IQ1},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Formats whose products are exact sums. */
static const gb_format integer_formats[] = {
    {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},  {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0},
    {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 128, 0}, {GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 32, 0},
    {GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 64, 0},  {GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 32, 0},
    {GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 128, 0}, {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0},
    {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 0, 0},
};
enum { INTEGER_FORMATS = sizeof integer_formats / sizeof *integer_formats };

static inline void fill_halves(uint64_t *state, uint8_t *bytes, uint64_t size, gb_dtype dtype) {
    for (uint64_t i = 0; i < size; i += 2) {
        float value = 0.1f * random_float(state);
        uint16_t half = dtype == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
        memcpy(bytes + i, &half, sizeof half);
    }
}

/* Any zero with any scale that goes with it. */
static inline void fill_groups(uint64_t *state, uint32_t bits, uint8_t *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        gb_group_integers group = {.zero = (uint32_t)random_below(state, (size_t)1 << bits)};
        group.scale = 1 + (uint32_t)random_below(state, gb_largest_group_scale(bits, group.zero));
        bytes[i] = gb_put_group_integers(bits, group);
    }
    assert_int_equal(gb_check_group_bytes(bits, bytes, count), count);
}

/* The data's end is exact, so that a sanitizer sees reads past it. */
static inline gb_quantized_matrix random_matrix(uint64_t *state, const gb_format *format, size_t rows,
                                                size_t columns) {
    gb_quantized_matrix matrix = {.format = *format};
    assert_true(gb_format_fits(format, columns));
    assert_true(gb_format_planes(format, rows, columns, &matrix.planes));
    const gb_planes *p = &matrix.planes;
    uint8_t *data = malloc((size_t)p->size);
    assert_non_null(data);
    for (uint64_t i = 0; i < p->size; i++)
        data[i] = (uint8_t)random_bits(state);
    const bool has_supers = p->super_scales.row_bytes > 0;
    const gb_plane *scales = has_supers ? &p->super_scales : &p->scales;
    const gb_plane *biases = has_supers ? &p->super_biases : &p->biases;
    fill_halves(state, data + scales->offset, rows * scales->row_bytes, format->scale);
    fill_halves(state, data + biases->offset, rows * biases->row_bytes, format->scale);
    if (format->kind == GB_FORMAT_PROGRESSIVE)
        fill_groups(state, format->bits, data + p->scales.offset, rows * p->scales.row_bytes);
    matrix.data = data;
    return matrix;
}

static inline gb_cpu_tensor tensor_of(const gb_quantized_matrix *matrix, size_t rows, size_t columns) {
    return (gb_cpu_tensor){.data = (void *)(uintptr_t)matrix->data,
                           .dtype = GB_QUANTIZED,
                           .rank = 2,
                           .dims = {rows, columns},
                           .quantized = matrix};
}

static inline gb_cpu_tensor dequantized(const gb_quantized_matrix *matrix, size_t rows, size_t columns) {
    gb_cpu_tensor dense = new_tensor(GB_F32, 2, rows, columns, 1);
    for (size_t r = 0; r < rows; r++)
        gb_format_dequantize(&matrix->format, &matrix->planes, matrix->data, r, 0, columns,
                             (float *)dense.data + r * columns);
    return dense;
}

/* Columns that the format fits; per row any number. */
static inline size_t random_columns(uint64_t *state, const gb_format *format) {
    size_t unit = format->kind == GB_FORMAT_TWO_LEVEL ? 256 : format->group ? format->group : 1;
    size_t most = unit == 1 ? 700 : 2400 / unit;
    return unit * (1 + random_below(state, most));
}

#endif
