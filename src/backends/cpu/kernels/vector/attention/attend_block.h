/* SPDX-License-Identifier: Apache-2.0
 *
 * What few queries and many have in common: softmax over blocks of keys with a running maximum (Milakov and
 * Gimelshein, 2018). Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_ATTEND_BLOCK_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_ATTEND_BLOCK_H

#include "backends/cpu/kernels/vector/lanes/tile.h"
#include "backends/cpu/kernels/vector/vector_sources.h"
#include "backends/math.h"

#include <math.h>

/* Positions first .. end - 1. */
typedef struct gb_positions {
    size_t first, end;
} gb_positions;

/* Of one query. */
typedef struct gb_running {
    float largest, sum;
    gb_positions read; /* of this block; empty: first = end */
} gb_running;

/* Rows of the cache or of the room that lie one after the other. */
typedef struct gb_run_of_rows {
    bool are_in_room;
    size_t row, count;
} gb_run_of_rows;

/* Those of the first positions, as many as lie together. */
static inline gb_run_of_rows gb_rows_of(const gb_attend *a, gb_positions positions) {
    const size_t count = positions.end - positions.first;
    if (positions.first >= a->room_begin)
        return (gb_run_of_rows){true, positions.first - a->room_begin, count};
    const size_t row = positions.first % a->capacity, before_room = a->room_begin - positions.first;
    const size_t left = a->capacity - row < before_room ? a->capacity - row : before_room;
    return (gb_run_of_rows){false, row, count < left ? count : left};
}

/* Where a head has the first of them; dtype is the head's, a constant where this is inlined. */
GB_INLINE const void *gb_first_row(const gb_cache_rows *head, gb_dtype dtype, gb_run_of_rows rows) {
    return gb_matrix_row(rows.are_in_room ? head->room : head->rows, dtype, head->stride, rows.row);
}

/* Where a head has a position's row. */
static inline const void *gb_row_at(const gb_attend *a, const gb_cache_rows *head, size_t position) {
    return gb_first_row(head, head->dtype, gb_rows_of(a, (gb_positions){position, position + 1}));
}

/* What all queries read, and what each of them reads of a block. */
static inline gb_positions gb_attend_positions(const gb_attend *a) {
    gb_positions all = {a->first[0], a->last[0] + 1};
    for (size_t q = 1; q < a->query_count; q++) {
        all.first = a->first[q] < all.first ? a->first[q] : all.first;
        all.end = a->last[q] + 1 > all.end ? a->last[q] + 1 : all.end;
    }
    return all;
}

static inline gb_positions gb_begin_block(const gb_attend *a, size_t block, gb_running *state) {
    const size_t block_end = block + GB_ATTEND_BLOCK;
    gb_positions all = {block_end, block};
    for (size_t q = 0; q < a->query_count; q++) {
        gb_positions *read = &state[q].read;
        read->first = a->first[q] > block ? a->first[q] : block;
        read->end = a->last[q] + 1 < block_end ? a->last[q] + 1 : block_end;
        if (read->first >= read->end) {
            read->first = read->end = block;
            continue;
        }
        all.first = read->first < all.first ? read->first : all.first;
        all.end = read->end > all.end ? read->end : all.end;
    }
    return all;
}

static inline float gb_largest_of(const float *scores, size_t count, float largest) {
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

static inline float gb_sum_of(const float *weights, size_t count) {
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

/* Turns a query's scores of the block into weights and brings its sum, and y, what was summed before, up to
 * date. */
static inline void gb_weigh(gb_running *state, float scale, float *scores, float *y, size_t value_size) {
    size_t count = state->read.end - state->read.first;
    for (size_t i = 0; i < count; i++)
        scores[i] *= scale;
    float largest = gb_largest_of(scores, count, state->largest);
    for (size_t i = 0; i < count; i++)
        scores[i] = gb_exp(scores[i] - largest);
    float correction = gb_exp(state->largest - largest);
    state->largest = largest;
    state->sum = state->sum * correction + gb_sum_of(scores, count);
    for (size_t d = 0; correction != 1.0f && d < value_size; d++)
        y[d] *= correction;
}

/* What a query's sums are divided by when all blocks are through. */
static inline float gb_divisor_of(const gb_running *state, float sink) {
    return sink == -INFINITY ? state->sum : state->sum + gb_exp(sink - state->largest);
}

/* The positions that all of some queries read: before and after them a query may read others. */
static inline gb_positions gb_read_together(const gb_running *state, size_t queries, size_t block) {
    gb_positions all = {block, block + GB_ATTEND_BLOCK};
    for (size_t q = 0; q < queries; q++) {
        all.first = state[q].read.first > all.first ? state[q].read.first : all.first;
        all.end = state[q].read.end < all.end ? state[q].read.end : all.end;
    }
    all.end = all.end > all.first ? all.end : all.first;
    return all;
}

/* What a query reads before those positions, and after them. */
static inline gb_positions gb_read_before(const gb_running *state, gb_positions all) {
    return (gb_positions){state->read.first, state->read.end < all.first ? state->read.end : all.first};
}

static inline gb_positions gb_read_after(const gb_running *state, gb_positions all) {
    return (gb_positions){state->read.first > all.end ? state->read.first : all.end, state->read.end};
}

#endif
