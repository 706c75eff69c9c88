/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of quantized weights as arithmetic reads them. Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LINEAR_QUANTIZED_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LINEAR_QUANTIZED_H

#include "backends/cpu/kernels/vector/interleaved/row.h"
#include "backends/cpu/kernels/vector/vector_sources.h"

/* Codes are taken in runs of at most this many; a run begins at a multiple of 8 inputs. */
enum { GB_CODE_RUN = 256 };

/* Eight codes of so many bits in as many bytes. */
GB_INLINE uint64_t gb_load_bytes(const uint8_t *from, int count) {
    uint64_t word = 0;
    for (int i = 0; i < count; i++)
        word |= (uint64_t)from[i] << (8 * i);
    return word;
}

GB_INLINE void gb_unpack_wide(const uint8_t *from, size_t count, int bits, int16_t *to) {
    for (size_t i = 0; i < count; i += 8, from += bits) {
        uint64_t word = gb_load_bytes(from, bits);
        for (int j = 0; j < 8; j++)
            to[i + (size_t)j] = (int16_t)((word >> (bits * j)) & ((1u << bits) - 1u));
    }
}

GB_INLINE void gb_unpack_canonical(const uint8_t *from, size_t count, int bits, int16_t *to) {
    if (bits == 4)
        for (size_t i = 0; i < count / 2; i++) {
            to[2 * i] = from[i] & 15;
            to[2 * i + 1] = from[i] >> 4;
        }
    else if (bits == 8)
        for (size_t i = 0; i < count; i++)
            to[i] = from[i];
    else if (bits == 2)
        gb_unpack_wide(from, count, 2, to);
    else if (bits == 3)
        gb_unpack_wide(from, count, 3, to);
    else if (bits == 5)
        gb_unpack_wide(from, count, 5, to);
    else
        gb_unpack_wide(from, count, 6, to);
}

/* The codes first .. first + count - 1 of a row of the matrix as integers (gb_format_integer). first is a
 * multiple of 8; so is count, except where codes are bytes. */
GB_INLINE void gb_unpack_codes(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t count,
                               int16_t *to) {
    const gb_code_book book = matrix->format.book;
    const uint8_t *from = (const uint8_t *)matrix->data + matrix->planes.codes.offset +
                          row * matrix->planes.codes.row_bytes + first * matrix->format.bits / 8;
    if (matrix->is_interleaved)
        gb_unpack_interleaved(matrix, row, first, count, to);
    else
        gb_unpack_canonical(from, count, matrix->format.bits, to);
    if (book != GB_BOOK_NONE) {
        const gb_book_bytes integers = gb_book_integers(book);
        for (size_t i = 0; i < count; i++)
            to[i] = (int16_t)gb_book_integer(integers, (uint32_t)to[i]);
        return;
    }
    const int16_t center = (int16_t)gb_format_center(&matrix->format);
    for (size_t i = 0; i < count && center != 0; i++)
        to[i] = (int16_t)(to[i] - center);
}

GB_INLINE gb_affine gb_affine_of(const gb_quantized_matrix *matrix, size_t row, size_t group) {
    if (matrix->is_interleaved)
        return gb_interleaved_affine(matrix, row, group);
    return gb_format_affine(&matrix->format, &matrix->planes, matrix->data, row, group);
}

#endif
