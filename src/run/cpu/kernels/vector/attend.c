/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/tile.h"
#include "run/cpu/kernels/vector/vector_sources.h"
#include "run/math.h"

#include <math.h>

/* Softmax over blocks of keys with a running maximum (Milakov and Gimelshein, 2018). */

typedef struct running {
    float largest, sum;
    float correction;  /* of what was summed before this block */
    size_t first, end; /* positions of this block that the query reads; empty: first = end */
} running;

/* Positions first .. end - 1 that lie in rows one after the other. */
typedef struct run_of_rows {
    size_t row, count;
} run_of_rows;

static run_of_rows rows_of(size_t first, size_t end, size_t capacity) {
    size_t row = first % capacity, left = capacity - row;
    return (run_of_rows){row, end - first < left ? end - first : left};
}

/* Asks for rows first .. end - 1, which are needed soon: rows of one head are far apart in memory, so that
 * the hardware does not see where the next one is. */
GB_INLINE void fetch_rows(const void *rows, gb_dtype dtype, size_t stride, size_t size, size_t first,
                          size_t end) {
    enum { LINE = 64 };
    const size_t bytes = size * (dtype == GB_F32 ? sizeof(float) : sizeof(uint16_t));
    for (size_t r = first; r < end; r++)
        for (size_t at = 0; at < bytes; at += LINE)
            __builtin_prefetch((const void *)((uintptr_t)gb_matrix_row(rows, dtype, stride, r) + at));
}

/* scores[q][j] = query[q] . key row + j, for rows of keys and a tile of queries. While the first tile is
 * computed the values of the same positions are asked for. */
GB_INLINE void score_rows(const gb_attend *a, gb_dtype dtype, int columns, size_t query, run_of_rows rows,
                          float *scores) {
    const void *keys = gb_matrix_row(a->keys, dtype, a->key_stride, rows.row);
    const void *values = gb_matrix_row(a->values, a->value_dtype, a->value_stride, rows.row);
    size_t r = 0;
    for (; rows.count - r >= GB_TILE_ROWS; r += GB_TILE_ROWS) {
        if (query == 0)
            fetch_rows(values, a->value_dtype, a->value_stride, a->value_size, r, r + GB_TILE_ROWS);
        gb_dot_tile(GB_TILE_ROWS, columns, gb_matrix_row(keys, dtype, a->key_stride, r), dtype, a->key_stride,
                    a->query + query, a->key_size, 0, scores + r, 1, GB_ATTEND_BLOCK);
    }
    for (; r < rows.count; r++)
        gb_dot_tile(1, columns, gb_matrix_row(keys, dtype, a->key_stride, r), dtype, a->key_stride,
                    a->query + query, a->key_size, 0, scores + r, 1, GB_ATTEND_BLOCK);
}

GB_INLINE void score_queries(const gb_attend *a, gb_dtype dtype, run_of_rows rows, size_t offset,
                             float scores[][GB_ATTEND_BLOCK]) {
    size_t q = 0;
    for (; a->query_count - q >= GB_TILE_COLUMNS; q += GB_TILE_COLUMNS)
        score_rows(a, dtype, GB_TILE_COLUMNS, q, rows, scores[q] + offset);
#if GB_VECTOR_LANES >= 8
    for (; a->query_count - q >= 2; q += 2)
        score_rows(a, dtype, 2, q, rows, scores[q] + offset);
#endif
    for (; q < a->query_count; q++)
        score_rows(a, dtype, 1, q, rows, scores[q] + offset);
}

/* Scores of the positions first .. end - 1 of the block; those that a query does not read are not used. */
static void score_block(const gb_attend *a, size_t block, size_t first, size_t end,
                        float scores[][GB_ATTEND_BLOCK]) {
    while (first < end) {
        run_of_rows rows = rows_of(first, end, a->capacity);
        if (a->key_dtype == GB_F32)
            score_queries(a, GB_F32, rows, first - block, scores);
        else
            score_queries(a, GB_BF16, rows, first - block, scores);
        first += rows.count;
    }
}

static float largest_of(const float *scores, size_t count, float largest) {
    float lanes[GB_LANES];
    for (size_t l = 0; l < GB_LANES; l++)
        lanes[l] = largest;
    size_t whole = count - count % GB_LANES;
    for (size_t i = 0; i < whole; i += GB_LANES)
        for (size_t l = 0; l < GB_LANES; l++)
            lanes[l] = scores[i + l] > lanes[l] ? scores[i + l] : lanes[l];
    for (size_t l = 0; l < count - whole; l++)
        lanes[l] = scores[whole + l] > lanes[l] ? scores[whole + l] : lanes[l];
    for (size_t l = 0; l < GB_LANES; l++)
        largest = lanes[l] > largest ? lanes[l] : largest;
    return largest;
}

static float sum_of(const float *weights, size_t count) {
    size_t whole = count - count % GB_LANES;
    gb_lanes sums = gb_zero_lanes();
    for (size_t i = 0; i < whole; i += GB_LANES) {
        gb_lanes part = gb_load_lanes(weights, GB_F32, i);
        for (int p = 0; p < GB_PARTS; p++)
            sums.part[p] += part.part[p];
    }
    if (whole < count) {
        gb_lanes part = gb_load_tail(weights, GB_F32, whole, count - whole);
        for (int p = 0; p < GB_PARTS; p++)
            sums.part[p] += part.part[p];
    }
    return gb_sum_lanes(sums);
}

/* Turns a query's scores into weights and brings its sum up to date. */
static void weigh(running *state, float scale, float *scores) {
    size_t count = state->end - state->first;
    for (size_t i = 0; i < count; i++)
        scores[i] *= scale;
    float largest = largest_of(scores, count, state->largest);
    for (size_t i = 0; i < count; i++)
        scores[i] = gb_exp(scores[i] - largest);
    state->correction = gb_exp(state->largest - largest);
    state->largest = largest;
    state->sum = state->sum * state->correction + sum_of(scores, count);
}

/* How many sums of 16 elements fit into the registers beside a row's elements. */
enum { VALUE_SUMS = GB_VECTOR_LANES == 16 ? 16 : GB_VECTOR_LANES == 8 ? 6 : 2 };

/* y[q][d ..] = y[q][d ..] * correction + weights . value rows, for 16 * blocks elements d and queries of the
 * same positions. While the first elements are summed the keys of the next positions are asked for. */
GB_INLINE void add_values_at(const gb_attend *a, gb_dtype dtype, int queries, int blocks, size_t query,
                             run_of_rows rows, const float *correction, const float *const *weights,
                             size_t d) {
    gb_lanes sums[VALUE_SUMS];
    const void *values = gb_matrix_row(a->values, dtype, a->value_stride, rows.row);
    const void *keys = gb_matrix_row(a->keys, a->key_dtype, a->key_stride, rows.row + rows.count);
#pragma GCC unroll 16
    for (int b = 0; b < blocks; b++)
#pragma GCC unroll 16
        for (int q = 0; q < queries; q++)
            sums[b * queries + q] = gb_multiply_by(
                gb_load_lanes(a->y[query + (size_t)q], GB_F32, d + (size_t)(b * GB_LANES)), correction[q]);
    for (size_t j = 0; j < rows.count; j++) {
        const void *value = gb_matrix_row(values, dtype, a->value_stride, j);
        if (d == 0 && query == 0)
            fetch_rows(keys, a->key_dtype, a->key_stride, a->key_size, j, j + 1);
#pragma GCC unroll 16
        for (int b = 0; b < blocks; b++) {
            gb_lanes lanes = gb_load_lanes(value, dtype, d + (size_t)(b * GB_LANES));
#pragma GCC unroll 16
            for (int q = 0; q < queries; q++)
                sums[b * queries + q] = gb_add_scaled(sums[b * queries + q], weights[q][j], lanes);
        }
    }
#pragma GCC unroll 16
    for (int b = 0; b < blocks; b++)
#pragma GCC unroll 16
        for (int q = 0; q < queries; q++)
            gb_store_lanes(a->y[query + (size_t)q] + d + b * GB_LANES, sums[b * queries + q]);
}

/* One element d at a time, where fewer than 16 are left. */
GB_INLINE void add_values_tail(const gb_attend *a, gb_dtype dtype, size_t query, run_of_rows rows,
                               float correction, const float *weights, size_t d) {
    const uint8_t *values = gb_matrix_row(a->values, dtype, a->value_stride, rows.row);
    for (; d < a->value_size; d++) {
        float sum = a->y[query][d] * correction;
        for (size_t j = 0; j < rows.count; j++) {
            size_t index = j * a->value_stride + d;
            float value = dtype == GB_F32
                              ? ((const float *)(const void *)values)[index]
                              : gb_float_from_bf16(((const uint16_t *)(const void *)values)[index]);
            sum += value * weights[j];
        }
        a->y[query][d] = sum;
    }
}

GB_INLINE void add_values(const gb_attend *a, gb_dtype dtype, int queries, size_t query, run_of_rows rows,
                          const float *correction, const float *const *weights) {
    const int blocks = VALUE_SUMS / queries;
    size_t d = 0;
    for (; a->value_size - d >= (size_t)(blocks * GB_LANES); d += (size_t)(blocks * GB_LANES))
        add_values_at(a, dtype, queries, blocks, query, rows, correction, weights, d);
    for (; a->value_size - d >= GB_LANES; d += GB_LANES)
        add_values_at(a, dtype, queries, 1, query, rows, correction, weights, d);
    for (int q = 0; q < queries; q++)
        add_values_tail(a, dtype, query + (size_t)q, rows, correction[q], weights[q], d);
}

/* Adds the weighted values of the block to a few queries that read the same positions of it. */
GB_INLINE void add_values_of_block(const gb_attend *a, gb_dtype dtype, int queries, size_t query,
                                   const running *state, size_t block, float (*scores)[GB_ATTEND_BLOCK]) {
    float correction[GB_TILE_COLUMNS];
    const float *weights[GB_TILE_COLUMNS];
    for (int q = 0; q < queries; q++)
        correction[q] = state[q].correction;
    for (size_t first = state->first; first < state->end;) {
        run_of_rows rows = rows_of(first, state->end, a->capacity);
        for (int q = 0; q < queries; q++)
            weights[q] = scores[q] + (first - block);
        add_values(a, dtype, queries, query, rows, correction, weights);
        for (int q = 0; q < queries; q++)
            correction[q] = 1.0f;
        first += rows.count;
    }
}

static bool read_the_same(const running *state, size_t count) {
    for (size_t q = 1; q < count; q++)
        if (state[q].first != state[0].first || state[q].end != state[0].end)
            return false;
    return true;
}

GB_INLINE void add_values_of_queries(const gb_attend *a, gb_dtype dtype, const running *state, size_t block,
                                     float (*scores)[GB_ATTEND_BLOCK]) {
    for (size_t q = 0, count; q < a->query_count; q += count) {
        const size_t left = a->query_count - q;
        if (left >= GB_TILE_COLUMNS && read_the_same(state + q, GB_TILE_COLUMNS)) {
            count = GB_TILE_COLUMNS;
            add_values_of_block(a, dtype, GB_TILE_COLUMNS, q, state + q, block, scores + q);
        } else if (GB_TILE_COLUMNS > 2 && left >= 2 && read_the_same(state + q, 2)) {
            count = 2;
            add_values_of_block(a, dtype, 2, q, state + q, block, scores + q);
        } else {
            count = 1;
            add_values_of_block(a, dtype, 1, q, state + q, block, scores + q);
        }
    }
}

static void attend_block(const gb_attend *a, size_t block, running *state) {
    float scores[GB_ATTEND_QUERIES][GB_ATTEND_BLOCK];
    size_t first = block + GB_ATTEND_BLOCK, end = block;
    for (size_t q = 0; q < a->query_count; q++) {
        state[q].first = a->first[q] > block ? a->first[q] : block;
        state[q].end = a->last[q] + 1 < block + GB_ATTEND_BLOCK ? a->last[q] + 1 : block + GB_ATTEND_BLOCK;
        if (state[q].first >= state[q].end) {
            state[q].first = state[q].end = block;
            continue;
        }
        first = state[q].first < first ? state[q].first : first;
        end = state[q].end > end ? state[q].end : end;
    }
    score_block(a, block, first, end, scores);
    for (size_t q = 0; q < a->query_count; q++)
        if (state[q].first < state[q].end)
            weigh(&state[q], a->scale, scores[q] + (state[q].first - block));
    if (a->value_dtype == GB_F32)
        add_values_of_queries(a, GB_F32, state, block, scores);
    else
        add_values_of_queries(a, GB_BF16, state, block, scores);
}

void GB_FOR_ISA(gb_attend)(const gb_attend *a) {
    running state[GB_ATTEND_QUERIES];
    size_t first = a->first[0], last = a->last[0];
    for (size_t q = 0; q < a->query_count; q++) {
        state[q] = (running){.largest = -INFINITY};
        memset(a->y[q], 0, a->value_size * sizeof(float));
        first = a->first[q] < first ? a->first[q] : first;
        last = a->last[q] > last ? a->last[q] : last;
    }
    for (size_t block = first - first % GB_ATTEND_BLOCK; block <= last; block += GB_ATTEND_BLOCK)
        attend_block(a, block, state);
    for (size_t q = 0; q < a->query_count; q++)
        for (size_t d = 0; d < a->value_size; d++)
            a->y[q][d] /= state[q].sum;
}
