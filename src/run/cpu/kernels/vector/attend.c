/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/attend_scores.h"
#include "run/cpu/kernels/vector/attend_values.h"
#include "run/cpu/kernels/vector/vector_sources.h"
#include "run/math.h"

#include <math.h>

/* Softmax over blocks of keys with a running maximum (Milakov and Gimelshein, 2018). A block of keys and
 * values meets all queries while it is in the cache. */

typedef struct running {
    float largest, sum;
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

/* Scores of the positions first .. end - 1 of the block; those that a query does not read are not used. */
static void score_block(const gb_attend *a, size_t block, size_t first, size_t end, float *scores) {
    while (first < end) {
        run_of_rows rows = rows_of(first, end, a->capacity);
        if (a->key_dtype == GB_F32)
            gb_score_queries(a, GB_F32, rows.row, rows.count, scores + (first - block));
        else
            gb_score_queries(a, GB_BF16, rows.row, rows.count, scores + (first - block));
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

/* Turns a query's scores into weights and brings its sum and what was summed before up to date. */
static void weigh(running *state, float scale, float *scores, float *y, size_t value_size) {
    size_t count = state->end - state->first;
    for (size_t i = 0; i < count; i++)
        scores[i] *= scale;
    float largest = largest_of(scores, count, state->largest);
    for (size_t i = 0; i < count; i++)
        scores[i] = gb_exp(scores[i] - largest);
    float correction = gb_exp(state->largest - largest);
    state->largest = largest;
    state->sum = state->sum * correction + sum_of(scores, count);
    for (size_t d = 0; correction != 1.0f && d < value_size; d++)
        y[d] *= correction;
}

/* Adds the weighted values of positions first .. end - 1 of the block to a few queries. */
GB_INLINE void add_positions(const gb_attend *a, gb_dtype dtype, int queries, size_t query, size_t block,
                             size_t first, size_t end, const float *weights) {
    while (first < end) {
        run_of_rows rows = rows_of(first, end, a->capacity);
        gb_add_values(a, dtype, queries, rows.row, rows.count, a->y + query,
                      weights + query * GB_ATTEND_BLOCK + (first - block));
        first += rows.count;
    }
}

/* Of a few queries: together what all of them read, and one by one what stands before and after it. */
GB_INLINE void add_together(const gb_attend *a, gb_dtype dtype, int queries, size_t query,
                            const running *state, size_t block, const float *weights) {
    size_t first = block, end = block + GB_ATTEND_BLOCK;
    for (int q = 0; q < queries; q++) {
        first = state[q].first > first ? state[q].first : first;
        end = state[q].end < end ? state[q].end : end;
    }
    end = end > first ? end : first;
    for (size_t q = 0; q < (size_t)queries; q++)
        add_positions(a, dtype, 1, query + q, block, state[q].first,
                      state[q].end < first ? state[q].end : first, weights);
    add_positions(a, dtype, queries, query, block, first, end, weights);
    for (size_t q = 0; q < (size_t)queries; q++)
        add_positions(a, dtype, 1, query + q, block, state[q].first > end ? state[q].first : end,
                      state[q].end, weights);
}

GB_INLINE void add_block(const gb_attend *a, gb_dtype dtype, const running *state, size_t block,
                         const float *weights) {
    size_t q = 0;
    for (; a->query_count - q >= GB_TILE_COLUMNS; q += GB_TILE_COLUMNS)
        add_together(a, dtype, GB_TILE_COLUMNS, q, state + q, block, weights);
    if (GB_TILE_COLUMNS > 2 && a->query_count - q >= 2) {
        add_together(a, dtype, GB_TILE_COLUMNS > 2 ? 2 : 1, q, state + q, block, weights);
        q += 2;
    }
    for (; q < a->query_count; q++)
        add_together(a, dtype, 1, q, state + q, block, weights);
}

static void attend_block(const gb_attend *a, size_t block, running *state) {
    _Alignas(64) float scores[GB_ATTEND_QUERIES][GB_ATTEND_BLOCK];
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
    score_block(a, block, first, end, scores[0]);
    for (size_t q = 0; q < a->query_count; q++)
        if (state[q].first < state[q].end)
            weigh(&state[q], a->scale, scores[q] + (state[q].first - block), a->y[q], a->value_size);
    if (a->value_dtype == GB_F32)
        add_block(a, GB_F32, state, block, scores[0]);
    else
        add_block(a, GB_BF16, state, block, scores[0]);
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
