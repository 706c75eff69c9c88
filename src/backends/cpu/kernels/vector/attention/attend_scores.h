/* SPDX-License-Identifier: Apache-2.0
 *
 * The first half of a block of attention: products of some queries with some keys.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_ATTEND_SCORES_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_ATTEND_SCORES_H

#include "backends/cpu/kernels/vector/attention/cache_codes.h"
#include "backends/cpu/kernels/vector/lanes/tile.h"
#include "backends/cpu/kernels/vector/vector_kernels.h"

/* How much of a cache is prefetched before it is read, in whole rows: what memory delivers while it answers.
 */
enum { GB_ATTEND_AHEAD = 8192 };

GB_INLINE size_t gb_attend_ahead(gb_dtype dtype, const gb_cache_rows *head) {
    if (gb_dtype_has_codes(dtype))
        return (GB_ATTEND_AHEAD / gb_code_bytes(dtype, head->size) + 1) * head->stride;
    size_t bytes = dtype == GB_F32 ? sizeof(float) : sizeof(uint16_t);
    size_t rows = GB_ATTEND_AHEAD / (head->size * bytes) + 1;
    return rows * head->stride * bytes;
}

/* sums[r][c] += key row r times query[c], of codes. */
GB_INLINE void gb_add_coded_tile(const gb_cache_rows *head, gb_dtype dtype, int rows, int columns,
                                 const void *keys, const float *const *query, size_t ahead,
                                 gb_lanes sums[][GB_TILE_COLUMNS]) {
    for (size_t g = 0; g < head->size / GB_CODE_GROUP; g++) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const void *row = gb_matrix_row(keys, dtype, head->stride, (size_t)r);
            gb_lanes key[GB_GROUP_LANES];
            gb_load_group(head, dtype, row, g, key);
            gb_fetch_ahead((const uint8_t *)row + gb_code_bytes(dtype, g * GB_CODE_GROUP), ahead);
#pragma GCC unroll 2
            for (size_t l = 0; l < GB_GROUP_LANES; l++)
#pragma GCC unroll 8
                for (int c = 0; c < columns; c++)
                    sums[r][c] =
                        gb_add_product(sums[r][c], key[l],
                                       gb_load_lanes(query[c], GB_F32, g * GB_CODE_GROUP + l * GB_LANES));
        }
    }
}

/* scores[c][r] = the sum of sums[r][c]. */
GB_INLINE void gb_store_scores(int rows, int columns, gb_lanes sums[][GB_TILE_COLUMNS], float *scores) {
    float all[GB_TILE_SUMS];
    gb_sum_tile(rows, columns, sums, all);
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++)
        memcpy(scores + c * GB_ATTEND_BLOCK, all + c * rows, (size_t)rows * sizeof *all);
}

/* scores[c][r] = query[c] . key r, for a tile. */
GB_INLINE void gb_score_tile(const gb_attend *a, gb_dtype dtype, int rows, int columns, const void *keys,
                             const float *const *query, size_t ahead, float *scores) {
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
    gb_zero_tile(rows, columns, sums);
    const size_t stride = a->keys.stride, size = a->keys.size;
    if (gb_dtype_has_codes(dtype)) {
        gb_add_coded_tile(&a->keys, dtype, rows, columns, keys, query, ahead, sums);
    } else {
        gb_add_tile(rows, columns, keys, dtype, stride, query, size - size % GB_LANES, ahead, sums);
        gb_add_tile_tail(rows, columns, keys, dtype, stride, query, size, sums);
    }
    gb_store_scores(rows, columns, sums, scores);
}

/* A few keys with the queries from q on that are fewer than a tile has. */
GB_INLINE void gb_score_last(const gb_attend *a, gb_dtype dtype, int rows, const void *keys, size_t q,
                             size_t ahead, float *scores) {
    const size_t left = a->query_count - q;
    if (GB_TILE_COLUMNS > 3 && left == 3)
        gb_score_tile(a, dtype, rows, GB_TILE_COLUMNS > 3 ? 3 : 1, keys, a->query + q, ahead, scores);
    else if (GB_TILE_COLUMNS > 2 && left == 2)
        gb_score_tile(a, dtype, rows, GB_TILE_COLUMNS > 2 ? 2 : 1, keys, a->query + q, ahead, scores);
    else if (left == 1)
        gb_score_tile(a, dtype, rows, 1, keys, a->query + q, ahead, scores);
}

/* A few keys with all queries, of which the first ones ask for later keys. */
GB_INLINE void gb_score_rows(const gb_attend *a, gb_dtype dtype, int rows, const void *keys, float *scores) {
    const size_t ahead = gb_attend_ahead(dtype, &a->keys);
    if (a->query_count < GB_TILE_COLUMNS) {
        gb_score_last(a, dtype, rows, keys, 0, ahead, scores);
        return;
    }
    gb_score_tile(a, dtype, rows, GB_TILE_COLUMNS, keys, a->query, ahead, scores);
    size_t q = GB_TILE_COLUMNS;
    for (; a->query_count - q >= GB_TILE_COLUMNS; q += GB_TILE_COLUMNS)
        gb_score_tile(a, dtype, rows, GB_TILE_COLUMNS, keys, a->query + q, 0, scores + q * GB_ATTEND_BLOCK);
    gb_score_last(a, dtype, rows, keys, q, 0, scores + q * GB_ATTEND_BLOCK);
}

/* scores[q][j] = query[q] . key in row number j of the rows. */
GB_INLINE void gb_score_queries(const gb_attend *a, gb_dtype dtype, gb_run_of_rows rows, float *scores) {
    const void *keys = gb_first_row(&a->keys, dtype, rows);
    const size_t count = rows.count;
    size_t r = 0;
    for (; count - r >= GB_TILE_ROWS; r += GB_TILE_ROWS)
        gb_score_rows(a, dtype, GB_TILE_ROWS, gb_matrix_row(keys, dtype, a->keys.stride, r), scores + r);
    for (; r < count; r++)
        gb_score_rows(a, dtype, 1, gb_matrix_row(keys, dtype, a->keys.stride, r), scores + r);
}

#endif
