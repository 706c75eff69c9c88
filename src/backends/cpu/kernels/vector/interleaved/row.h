/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of an interleaved matrix at a time, for rows of embeddings and for products in float32. Only this
 * folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_ROW_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_ROW_H

#include "backends/cpu/kernels/vector/lanes/lanes.h"
#include "backends/cpu/kernels/vector/vector_sources.h"
#include "tensor/packing.h"

/* What row has of a plane begins here; the same column of the next row stands `size` bytes further on. */
GB_INLINE const uint8_t *gb_interleaved_block(const gb_quantized_matrix *matrix, const gb_plane *plane,
                                              size_t row, size_t size) {
    const size_t in_block = row % GB_INTERLEAVED_ROWS;
    return (const uint8_t *)matrix->data + plane->offset + (row - in_block) * plane->row_bytes +
           in_block * size;
}

/* Adds pieces of `bits` bits of the codes first .. first + count - 1 above the low ones that are there. */
GB_INLINE void gb_add_pieces(const uint8_t *high, int bits, int low_bits, size_t first, size_t count,
                             int16_t *to) {
    const size_t step = (size_t)(8 / bits) * 4; /* columns of four bytes */
    const int mask = (1 << bits) - 1;
    for (size_t i = 0; i < count; i++) {
        const size_t column = first + i;
        const int byte = high[column / step * 64 + column % 4];
        to[i] = (int16_t)(to[i] | (byte >> (column % step / 4 * (size_t)bits) & mask) << low_bits);
    }
}

/* The codes first .. first + count - 1 of a row; first is a multiple of 8, count too unless codes are bytes.
 */
GB_INLINE void gb_unpack_interleaved(const gb_quantized_matrix *matrix, size_t row, size_t first,
                                     size_t count, int16_t *to) {
    const gb_plane *plane = &matrix->planes.codes;
    const int bits = matrix->format.bits;
    const uint8_t *low = gb_interleaved_block(matrix, plane, row, 4);
    if (bits == 8) {
        low += first / 4 * 64;
        for (size_t i = 0; i < count; i++)
            to[i] = low[i / 4 * 64 + i % 4];
        return;
    }
    const int low_bits = (int)gb_low_bits((uint32_t)bits);
    const size_t row_inputs = plane->row_bytes * 8 / (size_t)bits;
    memset(to, 0, count * sizeof *to);
    gb_add_pieces(low, low_bits, 0, first, count, to);
    if (bits > low_bits)
        gb_add_pieces(low + row_inputs * (size_t)low_bits / 8 * GB_INTERLEAVED_ROWS, bits - low_bits,
                      low_bits, first, count, to);
}

GB_INLINE float gb_interleaved_half(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row,
                                    size_t column, gb_dtype dtype) {
    uint16_t half;
    memcpy(&half, gb_interleaved_block(matrix, plane, row, 2) + column * 2 * GB_INTERLEAVED_ROWS,
           sizeof half);
    return dtype == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
}

/* A small integer of two levels: signed of 8 bits, or of 4 or 6. */
GB_INLINE int gb_interleaved_integer(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row,
                                     size_t group) {
    const uint8_t *block = gb_interleaved_block(matrix, plane, row, 1);
    if (matrix->format.scale_bits == 8)
        return (int8_t)block[group * GB_INTERLEAVED_ROWS];
    const size_t groups = plane->row_bytes * 8 / 6;
    const int low = block[group / 2 * GB_INTERLEAVED_ROWS] >> (group % 2 * 4) & 15;
    if (matrix->format.scale_bits == 4)
        return low;
    const int high = block[(groups / 2 + group / 4) * GB_INTERLEAVED_ROWS] >> (group % 4 * 2) & 3;
    return low | high << 4;
}

/* The integers of a group of a progressive format. */
GB_INLINE gb_group_integers gb_interleaved_group(const gb_quantized_matrix *matrix, size_t row,
                                                 size_t group) {
    const uint8_t *block = gb_interleaved_block(matrix, &matrix->planes.scales, row, 1);
    return gb_get_group_integers(matrix->format.bits, block[group * GB_INTERLEAVED_ROWS]);
}

/* gb_format_affine of an interleaved matrix. */
GB_INLINE gb_affine gb_interleaved_affine(const gb_quantized_matrix *matrix, size_t row, size_t group) {
    const gb_planes *planes = &matrix->planes;
    const gb_format *format = &matrix->format;
    gb_affine affine = {0, 0};
    if (format->kind == GB_FORMAT_ONE_LEVEL) {
        affine.scale = gb_interleaved_half(matrix, &planes->scales, row, group, format->scale);
        if (format->has_bias)
            affine.bias = gb_interleaved_half(matrix, &planes->biases, row, group, format->scale);
        return affine;
    }
    if (format->kind == GB_FORMAT_PROGRESSIVE)
        return gb_group_affine(gb_interleaved_half(matrix, &planes->super_scales, row, 0, GB_F16),
                               gb_interleaved_group(matrix, row, group));
    const size_t super = group * format->group / GB_SUPER_GROUP;
    affine.scale = gb_interleaved_half(matrix, &planes->super_scales, row, super, GB_F16) *
                   gb_book_unit(format->book) *
                   (float)gb_interleaved_integer(matrix, &planes->scales, row, group);
    if (format->has_bias)
        affine.bias = -(gb_interleaved_half(matrix, &planes->super_biases, row, super, GB_F16) *
                        (float)gb_interleaved_integer(matrix, &planes->biases, row, group));
    return affine;
}

#endif
