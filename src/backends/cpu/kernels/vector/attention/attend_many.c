/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/attention/attend_block.h"
#include "backends/cpu/kernels/vector/attention/attend_scores.h"

/* Many queries multiply each key and value so often that copies pay: of queries and results, whose rows
 * elsewhere share a few sets of the cache; and of keys and values as float32, of which a panel at a time
 * stays in the nearest cache while all queries meet it. Zeros pad rows to whole registers. */

enum {
    KEYS = 8,     /* of a panel */
    COLUMNS = 64, /* of a panel of values */
    /* of the values that one query's sums in registers belong to: so many that no addition waits */
    VECTORS = GB_VECTOR_LANES == 4 ? 8 : 4,
    PANEL = GB_ATTEND_BLOCK * COLUMNS
};

typedef struct workspace {
    float query[GB_ATTEND_QUERIES * GB_ATTEND_PANEL_SIZE]; /* [queries, key_width] */
    float y[GB_ATTEND_QUERIES * GB_ATTEND_PANEL_SIZE];     /* [queries, value_width] */
    float scores[GB_ATTEND_QUERIES][GB_ATTEND_BLOCK];
    float keys[PANEL];
    float values[GB_ATTEND_PANEL_SIZE / COLUMNS][PANEL]; /* of a block */
    gb_running state[GB_ATTEND_QUERIES];
    size_t key_width, value_width;
} workspace;

_Static_assert(sizeof(workspace) <= GB_ATTEND_COPIES, "the scratch holds a workspace");
_Static_assert((int)KEYS *(int)GB_ATTEND_PANEL_SIZE <= (int)PANEL, "a panel holds whole keys");
_Static_assert((int)GB_ATTEND_PANEL_SIZE % (int)COLUMNS == 0, "panels of values are whole");

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

/* Elements as float32, and zeros up to width. */
static void widen_row(const void *from, gb_dtype dtype, size_t count, size_t width, float *to) {
    GB_FOR_ISA(gb_widen)(from, dtype, count, to);
    memset(to + count, 0, (width - count) * sizeof *to);
}

/* Elements first .. first + count - 1 of a head's row, and zeros up to width. first is a multiple of
 * GB_CODE_GROUP. */
static void widen_cached(const gb_cache_rows *head, const void *from, size_t first, size_t count,
                         size_t width, float *to) {
    if (!gb_dtype_has_codes(head->dtype)) {
        widen_row(gb_matrix_row(from, head->dtype, 1, first), head->dtype, count, width, to);
        return;
    }
    for (size_t i = 0; i < count; i += GB_CODE_GROUP) {
        gb_lanes group[GB_GROUP_LANES];
        if (head->dtype == GB_Q8)
            gb_load_group(head, GB_Q8, from, (first + i) / GB_CODE_GROUP, group);
        else
            gb_load_group(head, GB_Q4, from, (first + i) / GB_CODE_GROUP, group);
        gb_store_lanes(to + i, group[0]);
        gb_store_lanes(to + i + GB_LANES, group[1]);
    }
    memset(to + count, 0, (width - count) * sizeof *to);
}

/* ---- Scores -------------------------------------------------------------------------------------------- */

/* Some keys of the panel with some queries. */
GB_INLINE void score_tile(const workspace *w, int keys, int queries, size_t key, size_t query,
                          float *scores) {
    const float *x[GB_TILE_COLUMNS];
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
#pragma GCC unroll 8
    for (int q = 0; q < queries; q++)
        x[q] = w->query + (query + (size_t)q) * w->key_width;
#pragma GCC unroll 8
    for (int k = 0; k < keys; k++)
#pragma GCC unroll 8
        for (int q = 0; q < queries; q++)
            sums[k][q] = gb_zero_lanes();
    gb_add_tile(keys, queries, w->keys + key * w->key_width, GB_F32, w->key_width, x, w->key_width, 0, sums);
    gb_store_scores(keys, queries, sums, scores + query * GB_ATTEND_BLOCK + key);
}

GB_INLINE void score_keys(const workspace *w, int queries, size_t keys, size_t query, float *scores) {
    size_t k = 0;
    for (; keys - k >= GB_TILE_ROWS; k += GB_TILE_ROWS)
        score_tile(w, GB_TILE_ROWS, queries, k, query, scores);
    for (; k < keys; k++)
        score_tile(w, 1, queries, k, query, scores);
}

static size_t head_bytes(const gb_cache_rows *head) {
    return gb_dtype_has_codes(head->dtype) ? gb_code_bytes(head->dtype, head->size)
                                           : head->size * gb_dtype_size(head->dtype);
}

/* Asks for the values of some positions, and for the keys that come after them. They are used soon, not next:
 * so only the second cache is to have them. */
static void fetch_rows(const gb_attend *a, size_t first, size_t keys) {
    enum { LINE = 64, SECOND_CACHE = 2 };
    const size_t key_bytes = head_bytes(&a->keys), value_bytes = head_bytes(&a->values);
    for (size_t k = 0; k < keys; k++) {
        const uint8_t *value = gb_row_at(a, &a->values, first + k);
        const uint8_t *key = gb_row_at(a, &a->keys, first + keys + k);
        for (size_t at = 0; at < value_bytes; at += LINE)
            __builtin_prefetch(value + at, 0, SECOND_CACHE);
        for (size_t at = 0; at < key_bytes; at += LINE)
            __builtin_prefetch(key + at, 0, SECOND_CACHE);
    }
}

/* Scores of these positions of the block for all queries; those that a query does not read are not used. */
static void score_block(const gb_attend *a, workspace *w, size_t block, gb_positions read) {
    while (read.first < read.end) {
        const size_t left = read.end - read.first, keys = left < KEYS ? left : KEYS;
        fetch_rows(a, read.first, keys);
        float *scores = w->scores[0] + (read.first - block);
        for (size_t k = 0; k < keys; k++)
            widen_cached(&a->keys, gb_row_at(a, &a->keys, read.first + k), 0, a->keys.size, w->key_width,
                         w->keys + k * w->key_width);
        size_t q = 0;
        for (; a->query_count - q >= GB_TILE_COLUMNS; q += GB_TILE_COLUMNS)
            score_keys(w, GB_TILE_COLUMNS, keys, q, scores);
        for (; q < a->query_count; q++)
            score_keys(w, 1, keys, q, scores);
        read.first += keys;
    }
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* y += weights * values, for positions of the block in their order; VECTORS of the panel's columns. */
GB_INLINE void add_vectors(const workspace *w, int queries, size_t query, size_t block, gb_positions read,
                           const float *panel, float *y) {
    gb_vector sums[GB_TILE_COLUMNS][VECTORS];
#pragma GCC unroll 8
    for (int q = 0; q < queries; q++)
        memcpy(sums[q], y + (size_t)q * w->value_width, sizeof sums[q]);
    for (size_t r = read.first - block; r < read.end - block; r++) {
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) {
            gb_vector value;
            memcpy(&value, panel + r * COLUMNS + v * GB_VECTOR_LANES, sizeof value);
#pragma GCC unroll 8
            for (int q = 0; q < queries; q++)
                sums[q][v] += value * w->scores[query + (size_t)q][r];
        }
    }
#pragma GCC unroll 8
    for (int q = 0; q < queries; q++)
        memcpy(y + (size_t)q * w->value_width, sums[q], sizeof sums[q]);
}

/* All columns of a panel. */
GB_INLINE void add_panel(workspace *w, int queries, size_t query, size_t block, gb_positions read,
                         size_t panel) {
    if (read.first >= read.end)
        return;
    float *y = w->y + query * w->value_width + panel * COLUMNS;
    for (size_t c = 0; c < COLUMNS; c += VECTORS * GB_VECTOR_LANES)
        add_vectors(w, queries, query, block, read, w->values[panel] + c, y + c);
}

/* Together what all of some queries read, and one by one what stands before and after it. */
GB_INLINE void add_together(workspace *w, int queries, size_t query, size_t block, size_t panel) {
    const gb_running *state = w->state + query;
    const gb_positions all = gb_read_together(state, (size_t)queries, block);
    for (size_t q = 0; q < (size_t)queries; q++)
        add_panel(w, 1, query + q, block, gb_read_before(&state[q], all), panel);
    add_panel(w, queries, query, block, all, panel);
    for (size_t q = 0; q < (size_t)queries; q++)
        add_panel(w, 1, query + q, block, gb_read_after(&state[q], all), panel);
}

/* A row goes to all panels at once, so that memory is read in long stretches. */
static void widen_values(const gb_attend *a, workspace *w, size_t block, gb_positions read) {
    for (size_t p = read.first; p < read.end; p++) {
        const void *row = gb_row_at(a, &a->values, p);
        for (size_t column = 0; column < a->values.size; column += COLUMNS) {
            const size_t left = a->values.size - column;
            widen_cached(&a->values, row, column, left < COLUMNS ? left : COLUMNS, COLUMNS,
                         w->values[column / COLUMNS] + (p - block) * COLUMNS);
        }
    }
}

static void add_block(const gb_attend *a, workspace *w, size_t block, gb_positions read) {
    widen_values(a, w, block, read);
    for (size_t panel = 0; panel * COLUMNS < a->values.size; panel++) {
        size_t q = 0;
        for (; a->query_count - q >= GB_TILE_COLUMNS; q += GB_TILE_COLUMNS)
            add_together(w, GB_TILE_COLUMNS, q, block, panel);
        for (; q < a->query_count; q++)
            add_together(w, 1, q, block, panel);
    }
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

static void attend_block(const gb_attend *a, workspace *w, size_t block) {
    const gb_positions read = gb_begin_block(a, block, w->state);
    score_block(a, w, block, read);
    for (size_t q = 0; q < a->query_count; q++) {
        gb_running *state = &w->state[q];
        if (state->read.first < state->read.end)
            gb_weigh(state, a->scale, w->scores[q] + (state->read.first - block), w->y + q * w->value_width,
                     a->values.size);
    }
    add_block(a, w, block, read);
}

void GB_FOR_ISA(gb_attend_many)(const gb_attend *a, void *scratch) {
    workspace *w = scratch;
    const gb_positions read = gb_attend_positions(a);
    w->key_width = round_up(a->keys.size, GB_LANES);
    w->value_width = round_up(a->values.size, COLUMNS);
    memset(w->y, 0, a->query_count * w->value_width * sizeof *w->y);
    for (size_t q = 0; q < a->query_count; q++) {
        w->state[q] = (gb_running){.largest = -INFINITY};
        widen_row(a->query[q], GB_F32, a->keys.size, w->key_width, w->query + q * w->key_width);
    }
    for (size_t block = read.first - read.first % GB_ATTEND_BLOCK; block < read.end; block += GB_ATTEND_BLOCK)
        attend_block(a, w, block);
    for (size_t q = 0; q < a->query_count; q++) {
        const float divisor = gb_divisor_of(&w->state[q], a->sink[q]);
        for (size_t d = 0; d < a->values.size; d++)
            a->y[q][d] = w->y[q * w->value_width + d] / divisor;
    }
}
