/* SPDX-License-Identifier: Apache-2.0
 *
 * The second half of a block of attention: values, weighted for some queries.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_ATTEND_VALUES_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_ATTEND_VALUES_H

#include "backends/cpu/kernels/vector/attention/attend_scores.h"

GB_INLINE float gb_load_one(const void *array, gb_dtype dtype, size_t index) {
    return dtype == GB_F32 ? ((const float *)array)[index]
                           : gb_float_from_bf16(((const uint16_t *)array)[index]);
}

/* y[q] += weights[q][r] * value r, for a tile of rows and queries in the order of rows. Weights stay in
 * registers, values come in the order in which they lie in memory. */
GB_INLINE void gb_add_value_tile(const gb_attend *a, gb_dtype dtype, int rows, int queries,
                                 const void *values, float *const *to, const float *weights, size_t ahead) {
    gb_vector weight[GB_TILE_ROWS][GB_TILE_COLUMNS];
    float *y[GB_TILE_COLUMNS]; /* which no store can change */
    for (int q = 0; q < queries; q++)
        y[q] = to[q];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int q = 0; q < queries; q++)
            weight[r][q] = (gb_vector){0} + weights[q * GB_ATTEND_BLOCK + r];
    const size_t size = a->values.size, stride = a->values.stride;
    size_t d = 0;
    for (; size - d >= GB_VECTOR_LANES; d += GB_VECTOR_LANES) {
        gb_vector sums[GB_TILE_COLUMNS];
#pragma GCC unroll 8
        for (int q = 0; q < queries; q++)
            memcpy(&sums[q], y[q] + d, sizeof sums[q]);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const void *row = gb_matrix_row(values, dtype, stride, (size_t)r);
            gb_vector value = gb_load_vector(row, dtype, d);
            gb_fetch_ahead(gb_matrix_row(row, dtype, 1, d), ahead);
#pragma GCC unroll 8
            for (int q = 0; q < queries; q++)
                sums[q] += value * weight[r][q];
        }
#pragma GCC unroll 8
        for (int q = 0; q < queries; q++)
            memcpy(y[q] + d, &sums[q], sizeof sums[q]);
    }
    for (; d < size; d++)
        for (int q = 0; q < queries; q++)
            for (int r = 0; r < rows; r++)
                y[q][d] += gb_load_one(gb_matrix_row(values, dtype, stride, (size_t)r), dtype, d) *
                           weights[q * GB_ATTEND_BLOCK + r];
}

/* The same of codes. */
GB_INLINE void gb_add_coded_values(const gb_cache_rows *head, gb_dtype dtype, int rows, int queries,
                                   const void *values, float *const *y, const float *weights, size_t ahead) {
    for (size_t g = 0; g < head->size / GB_CODE_GROUP; g++) {
        gb_lanes sums[GB_TILE_COLUMNS][GB_GROUP_LANES];
#pragma GCC unroll 8
        for (int q = 0; q < queries; q++)
#pragma GCC unroll 2
            for (size_t l = 0; l < GB_GROUP_LANES; l++)
                sums[q][l] = gb_load_lanes(y[q], GB_F32, g * GB_CODE_GROUP + l * GB_LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const void *row = gb_matrix_row(values, dtype, head->stride, (size_t)r);
            gb_lanes value[GB_GROUP_LANES];
            gb_load_group(head, dtype, row, g, value);
            gb_fetch_ahead((const uint8_t *)row + gb_code_bytes(dtype, g * GB_CODE_GROUP), ahead);
#pragma GCC unroll 8
            for (int q = 0; q < queries; q++)
#pragma GCC unroll 2
                for (size_t l = 0; l < GB_GROUP_LANES; l++)
                    sums[q][l] = gb_add_scaled(sums[q][l], weights[q * GB_ATTEND_BLOCK + r], value[l]);
        }
#pragma GCC unroll 8
        for (int q = 0; q < queries; q++)
#pragma GCC unroll 2
            for (size_t l = 0; l < GB_GROUP_LANES; l++)
                gb_store_lanes(y[q] + g * GB_CODE_GROUP + l * GB_LANES, sums[q][l]);
    }
}

GB_INLINE void gb_add_value_rows(const gb_attend *a, gb_dtype dtype, int rows, int queries,
                                 const void *values, float *const *y, const float *weights, size_t ahead) {
    if (gb_dtype_has_codes(dtype))
        gb_add_coded_values(&a->values, dtype, rows, queries, values, y, weights, ahead);
    else
        gb_add_value_tile(a, dtype, rows, queries, values, y, weights, ahead);
}

/* Some rows, for a few queries; weights begin with the first row's. */
GB_INLINE void gb_add_values(const gb_attend *a, gb_dtype dtype, int queries, gb_run_of_rows rows,
                             float *const *y, const float *weights) {
    const void *values = gb_first_row(&a->values, dtype, rows);
    const size_t count = rows.count;
    size_t r = 0, ahead = gb_attend_ahead(dtype, &a->values);
    for (; count - r >= GB_TILE_ROWS; r += GB_TILE_ROWS)
        gb_add_value_rows(a, dtype, GB_TILE_ROWS, queries, gb_matrix_row(values, dtype, a->values.stride, r),
                          y, weights + r, ahead);
    for (; r < count; r++)
        gb_add_value_rows(a, dtype, 1, queries, gb_matrix_row(values, dtype, a->values.stride, r), y,
                          weights + r, ahead);
}

#endif
