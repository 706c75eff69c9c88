/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/attention/attend_block.h"
#include "backends/cpu/kernels/vector/attention/attend_scores.h"
#include "backends/cpu/kernels/vector/attention/attend_values.h"
#include "backends/cpu/kernels/vector/hadamard.h"

_Static_assert((int)GB_MAX_CODED_HEAD <= (int)GB_ATTEND_PANEL_SIZE, "rotated queries fit the scratch");

/* A block of keys and values meets all queries while it is in the cache. */

enum { FEW_QUERIES = 8 };

/* Each dtype has loops of its own. */
static void score_rows(const gb_attend *a, gb_run_of_rows rows, float *scores) {
    switch (a->keys.dtype) {
    case GB_F32:
        gb_score_queries(a, GB_F32, rows, scores);
        break;
    case GB_Q8:
        gb_score_queries(a, GB_Q8, rows, scores);
        break;
    case GB_Q4:
        gb_score_queries(a, GB_Q4, rows, scores);
        break;
    default:
        gb_score_queries(a, GB_BF16, rows, scores);
    }
}

/* Scores of the positions of the block; those that a query does not read are not used. */
static void score_block(const gb_attend *a, size_t block, gb_positions read, float *scores) {
    while (read.first < read.end) {
        gb_run_of_rows rows = gb_rows_of(a, read);
        score_rows(a, rows, scores + (read.first - block));
        read.first += rows.count;
    }
}

/* One loop for as many queries as a tile has columns, one for two, one for one. */
GB_INLINE void add_rows(const gb_attend *a, gb_dtype dtype, int queries, gb_run_of_rows rows, float *const *y,
                        const float *weights) {
    if (queries == GB_TILE_COLUMNS)
        gb_add_values(a, dtype, GB_TILE_COLUMNS, rows, y, weights);
    else if (GB_TILE_COLUMNS > 2 && queries == 2)
        gb_add_values(a, dtype, GB_TILE_COLUMNS > 2 ? 2 : 1, rows, y, weights);
    else
        gb_add_values(a, dtype, 1, rows, y, weights);
}

/* Adds weighted values to a few queries. Each dtype has loops of its own. */
static void add_values(const gb_attend *a, int queries, gb_run_of_rows rows, float *const *y,
                       const float *weights) {
    switch (a->values.dtype) {
    case GB_F32:
        add_rows(a, GB_F32, queries, rows, y, weights);
        break;
    case GB_Q8:
        add_rows(a, GB_Q8, queries, rows, y, weights);
        break;
    case GB_Q4:
        add_rows(a, GB_Q4, queries, rows, y, weights);
        break;
    default:
        add_rows(a, GB_BF16, queries, rows, y, weights);
    }
}

/* The same of positions of the block. */
static void add_positions(const gb_attend *a, int queries, size_t query, size_t block, gb_positions read,
                          const float *weights) {
    while (read.first < read.end) {
        gb_run_of_rows rows = gb_rows_of(a, read);
        add_values(a, queries, rows, a->y + query, weights + query * GB_ATTEND_BLOCK + (read.first - block));
        read.first += rows.count;
    }
}

/* Of a few queries: together what all of them read, and one by one what stands before and after it. */
static void add_together(const gb_attend *a, int queries, size_t query, const gb_running *state, size_t block,
                         const float *weights) {
    const gb_positions all = gb_read_together(state, (size_t)queries, block);
    for (size_t q = 0; q < (size_t)queries; q++)
        add_positions(a, 1, query + q, block, gb_read_before(&state[q], all), weights);
    add_positions(a, queries, query, block, all, weights);
    for (size_t q = 0; q < (size_t)queries; q++)
        add_positions(a, 1, query + q, block, gb_read_after(&state[q], all), weights);
}

static void add_block(const gb_attend *a, const gb_running *state, size_t block, const float *weights) {
    size_t q = 0;
    for (; a->query_count - q >= GB_TILE_COLUMNS; q += GB_TILE_COLUMNS)
        add_together(a, GB_TILE_COLUMNS, q, state + q, block, weights);
    if (GB_TILE_COLUMNS > 2 && a->query_count - q >= 2) {
        add_together(a, 2, q, state + q, block, weights);
        q += 2;
    }
    if (q < a->query_count)
        add_positions(a, 1, q, block, state[q].read, weights);
}

static void attend_block(const gb_attend *a, size_t block, gb_running *state) {
    _Alignas(64) float scores[FEW_QUERIES][GB_ATTEND_BLOCK];
    score_block(a, block, gb_begin_block(a, block, state), scores[0]);
    for (size_t q = 0; q < a->query_count; q++)
        if (state[q].read.first < state[q].read.end)
            gb_weigh(&state[q], a->scale, scores[q] + (state[q].read.first - block), a->y[q], a->values.size);
    add_block(a, state, block, scores[0]);
}

/* At most FEW_QUERIES. */
static void attend_few(const gb_attend *a) {
    gb_running state[FEW_QUERIES];
    const gb_positions read = gb_attend_positions(a);
    for (size_t q = 0; q < a->query_count; q++) {
        state[q] = (gb_running){.largest = -INFINITY};
        memset(a->y[q], 0, a->values.size * sizeof(float));
    }
    for (size_t block = read.first - read.first % GB_ATTEND_BLOCK; block < read.end; block += GB_ATTEND_BLOCK)
        attend_block(a, block, state);
    for (size_t q = 0; q < a->query_count; q++) {
        const float divisor = gb_divisor_of(&state[q], a->sink[q]);
        for (size_t d = 0; d < a->values.size; d++)
            a->y[q][d] /= divisor;
    }
}

/* FEW_QUERIES at a time. */
static void attend_in_parts(const gb_attend *a) {
    for (size_t q = 0; q < a->query_count; q += FEW_QUERIES) {
        const size_t left = a->query_count - q, count = left < FEW_QUERIES ? left : FEW_QUERIES;
        gb_attend part = *a;
        part.query_count = count;
        memcpy(part.query, a->query + q, count * sizeof *part.query);
        memcpy(part.y, a->y + q, count * sizeof *part.y);
        memcpy(part.first, a->first + q, count * sizeof *part.first);
        memcpy(part.last, a->last + q, count * sizeof *part.last);
        memcpy(part.sink, a->sink + q, count * sizeof *part.sink);
        attend_few(&part);
    }
}

static void attend_any(const gb_attend *a, void *scratch) {
    const bool fits = a->keys.size <= GB_ATTEND_PANEL_SIZE && a->values.size <= GB_ATTEND_PANEL_SIZE;
    const bool has_codes = gb_dtype_has_codes(a->keys.dtype) || gb_dtype_has_codes(a->values.dtype);
    const size_t few = has_codes ? GB_TILE_COLUMNS : FEW_QUERIES;
    if (a->query_count > few && fits)
        GB_FOR_ISA(gb_attend_many)(a, scratch);
    else
        attend_in_parts(a);
}

void GB_FOR_ISA(gb_attend)(const gb_attend *a, void *scratch) {
    gb_attend rotated = *a;
    float *query = (float *)((uint8_t *)scratch + GB_ATTEND_COPIES);
    for (size_t q = 0; a->keys.rotation > 0 && q < a->query_count; q++, query += a->keys.size) {
        gb_hadamard_orthonormal(a->query[q], a->keys.size, a->keys.rotation, query);
        rotated.query[q] = query;
    }
    attend_any(&rotated, scratch);
    for (size_t q = 0; a->values.rotation > 0 && q < a->query_count; q++)
        gb_hadamard_orthonormal(a->y[q], a->values.size, a->values.rotation, a->y[q]);
}
