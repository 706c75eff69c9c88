/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of several weight rows with several float32 rows at once: a tile of dot products whose partial
 * sums stay in registers. Rows, columns and dtype are constants where these functions are inlined.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_TILE_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_TILE_H

#include "backends/cpu/kernels/vector/lanes/sums.h"

/* How many sums fit into the registers: ROWS x COLUMNS of 16 lanes each, COLUMNS also the most in one pass.
 */
#if GB_VECTOR_LANES == 16
enum { GB_TILE_ROWS = 4, GB_TILE_COLUMNS = 4 };
#elif GB_VECTOR_LANES == 8
enum { GB_TILE_ROWS = 2, GB_TILE_COLUMNS = 3 };
#else
enum { GB_TILE_ROWS = 2, GB_TILE_COLUMNS = 1 };
#endif

/* The first element of row r of a matrix; the stride of codes is in bytes. */
GB_INLINE const void *gb_matrix_row(const void *matrix, gb_dtype dtype, size_t stride, size_t r) {
    size_t size = dtype == GB_F32 ? sizeof(float) : gb_dtype_has_codes(dtype) ? 1 : sizeof(uint16_t);
    return (const uint8_t *)matrix + r * stride * size;
}

/* Asks for the cache line that is `ahead` bytes further on; 0: none. It may lie past the end. */
GB_INLINE void gb_fetch_ahead(const void *at, size_t ahead) {
    if (ahead > 0)
        __builtin_prefetch((const void *)((uintptr_t)at + ahead));
}

GB_INLINE void gb_zero_tile(int rows, int columns, gb_lanes sums[][GB_TILE_COLUMNS]) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sums[r][c] = gb_zero_lanes();
}

/* sums[r][c] += weight row r times x[c], elements 0 .. count - 1, count a multiple of 16. */
GB_INLINE void gb_add_tile(int rows, int columns, const void *weight, gb_dtype dtype, size_t stride,
                           const float *const *x, size_t count, size_t ahead,
                           gb_lanes sums[][GB_TILE_COLUMNS]) {
    for (size_t i = 0; i < count; i += GB_LANES) {
        gb_lanes column[GB_TILE_COLUMNS];
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            column[c] = gb_load_lanes(x[c], GB_F32, i);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const void *from = gb_matrix_row(weight, dtype, stride, (size_t)r);
            gb_lanes row = gb_load_lanes(from, dtype, i);
            gb_fetch_ahead(gb_matrix_row(from, dtype, 1, i), ahead);
#pragma GCC unroll 8
            for (int c = 0; c < columns; c++)
                sums[r][c] = gb_add_product(sums[r][c], row, column[c]);
        }
    }
}

/* The elements after the last multiple of 16 below count. */
GB_INLINE void gb_add_tile_tail(int rows, int columns, const void *weight, gb_dtype dtype, size_t stride,
                                const float *const *x, size_t count, gb_lanes sums[][GB_TILE_COLUMNS]) {
    size_t whole = count - count % GB_LANES;
    if (whole == count)
        return;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        const void *from = gb_matrix_row(weight, dtype, stride, (size_t)r);
        gb_lanes row = gb_load_tail(from, dtype, whole, count - whole);
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sums[r][c] = gb_add_product(sums[r][c], row, gb_load_tail(x[c], GB_F32, whole, count - whole));
    }
}

/* The most sums that a tile has, in whole calls of gb_sum_many. */
enum { GB_TILE_SUMS = (GB_TILE_ROWS * GB_TILE_COLUMNS + GB_SUMS - 1) / GB_SUMS * GB_SUMS };

/* all[c * rows + r] = the sum of sums[r][c]. */
GB_INLINE void gb_sum_tile(int rows, int columns, gb_lanes sums[][GB_TILE_COLUMNS], float all[GB_TILE_SUMS]) {
    gb_lanes list[GB_TILE_SUMS];
#pragma GCC unroll 16
    for (int i = 0; i < GB_TILE_SUMS; i++)
        list[i] = i < rows * columns ? sums[i % rows][i / rows] : gb_zero_lanes();
#pragma GCC unroll 16
    for (int i = 0; i < rows * columns; i += GB_SUMS)
        gb_sum_many(list + i, all + i);
}

/* y[r * row_step + c * column_step] = weight row r . x[c], of count elements. */
GB_INLINE void gb_dot_tile(int rows, int columns, const void *weight, gb_dtype dtype, size_t stride,
                           const float *const *x, size_t count, size_t ahead, float *y, size_t row_step,
                           size_t column_step) {
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
    gb_zero_tile(rows, columns, sums);
    gb_add_tile(rows, columns, weight, dtype, stride, x, count - count % GB_LANES, ahead, sums);
    gb_add_tile_tail(rows, columns, weight, dtype, stride, x, count, sums);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            y[(size_t)r * row_step + (size_t)c * column_step] = gb_sum_lanes(sums[r][c]);
}

#endif
