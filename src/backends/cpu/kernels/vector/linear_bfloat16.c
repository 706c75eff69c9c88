/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/pairs.h"
#include "backends/cpu/kernels/vector/sums.h"
#include "backends/cpu/kernels/vector/vector_sources.h"

/* Both matrices are read as they lie in memory. With many tokens blocks along k keep the inputs of a block of
 * tokens in the cache, while the partial sums wait in memory. */

enum {
    FEW_TOKENS = 15,
    FETCH_AHEAD = 8192,      /* bytes of one stream of rows: what memory delivers while it answers */
    PAGE_AHEAD = 128 * 1024, /* so that a page is found by the time it is read */
    BLOCK_TOKENS = 64,
    BLOCK_ROWS = 16,
    BLOCK_INPUTS = 2048 /* a multiple of 32 */
};

typedef gb_lanes waiting_sums[BLOCK_TOKENS][BLOCK_ROWS];

_Static_assert(sizeof(waiting_sums) <= GB_LINEAR_SCRATCH, "the scratch holds the sums");

static const uint16_t *weight_row(const gb_linear *l, size_t row) {
    return (const uint16_t *)l->weight + row * l->weight_stride;
}

/* Rows of x from token on, each from element index on. */
GB_INLINE void point_at_rows(const gb_linear *l, size_t token, size_t index, int columns,
                             const uint16_t **x) {
    for (int c = 0; c < columns; c++)
        x[c] = l->activations->halves + gb_linear_input_row(l, token + (size_t)c) * l->activations->stride +
               index;
}

/* ---- Few tokens: each weight is read once, from memory ------------------------------------------------- */

GB_INLINE void dot_rows(const gb_linear *l, int rows, int columns, size_t row, size_t token) {
    const uint16_t *x[GB_TILE_COLUMNS];
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
    point_at_rows(l, token, 0, columns, x);
    memset(sums, 0, sizeof sums);
    gb_add_pair_tile(rows, columns, weight_row(l, row), l->weight_stride, x, l->inputs,
                     token == 0 ? FETCH_AHEAD : 0, sums);
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++)
            gb_linear_result(l, token + (size_t)c)[row + (size_t)r] = gb_sum_lanes(sums[r][c]);
}

GB_INLINE void dot_all_tokens(const gb_linear *l, int rows, size_t row) {
    size_t token = 0;
    for (; l->tokens - token >= GB_TILE_COLUMNS; token += GB_TILE_COLUMNS)
        dot_rows(l, rows, GB_TILE_COLUMNS, row, token);
    for (; token < l->tokens; token++)
        dot_rows(l, rows, 1, row, token);
}

static void linear_few(const gb_linear *l, size_t first, size_t end) {
    size_t row = first;
    for (; l->tokens > 1 && end - row >= GB_TILE_ROWS; row += GB_TILE_ROWS)
        dot_all_tokens(l, GB_TILE_ROWS, row);
    for (; row < end; row++) {
        gb_fetch_ahead(weight_row(l, row), PAGE_AHEAD);
        dot_all_tokens(l, 1, row);
    }
}

/* ---- Many tokens --------------------------------------------------------------------------------------- */

typedef struct span {
    size_t first, count;
} span;

GB_INLINE void add_tile(const gb_linear *l, int rows, int columns, size_t row, size_t token, span inputs,
                        gb_lanes (*waiting)[BLOCK_ROWS]) {
    const uint16_t *x[GB_TILE_COLUMNS];
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
    point_at_rows(l, token, inputs.first, columns, x);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sums[r][c] = waiting[c][r];
    gb_add_pair_tile(rows, columns, weight_row(l, row) + inputs.first, l->weight_stride, x, inputs.count, 0,
                     sums);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            waiting[c][r] = sums[r][c];
}

GB_INLINE void add_rows(const gb_linear *l, int rows, size_t row, span tokens, span inputs,
                        gb_lanes (*waiting)[BLOCK_ROWS]) {
    size_t t = 0;
    for (; tokens.count - t >= GB_TILE_COLUMNS; t += GB_TILE_COLUMNS)
        add_tile(l, rows, GB_TILE_COLUMNS, row, tokens.first + t, inputs, waiting + t);
    for (; t < tokens.count; t++)
        add_tile(l, rows, 1, row, tokens.first + t, inputs, waiting + t);
}

static void store_sums(const gb_lanes sums[BLOCK_ROWS], size_t count, float *y) {
    float all[BLOCK_ROWS];
    for (int r = 0; r < BLOCK_ROWS; r += GB_SUMS)
        gb_sum_many(sums + r, all + r);
    memcpy(y, all, count * sizeof *y);
}

static void linear_block(const gb_linear *l, span rows, span tokens, waiting_sums sums) {
    memset(sums, 0, tokens.count * sizeof *sums);
    for (span inputs = {0, 0}; inputs.first < l->inputs; inputs.first += BLOCK_INPUTS) {
        const size_t left = l->inputs - inputs.first;
        inputs.count = left < BLOCK_INPUTS ? left : BLOCK_INPUTS;
        size_t r = 0;
        for (; rows.count - r >= GB_TILE_ROWS; r += GB_TILE_ROWS)
            add_rows(l, GB_TILE_ROWS, rows.first + r, tokens, inputs, (gb_lanes(*)[BLOCK_ROWS]) & sums[0][r]);
        for (; r < rows.count; r++)
            add_rows(l, 1, rows.first + r, tokens, inputs, (gb_lanes(*)[BLOCK_ROWS]) & sums[0][r]);
    }
    for (size_t t = 0; t < tokens.count; t++)
        store_sums(sums[t], rows.count, gb_linear_result(l, tokens.first + t) + rows.first);
}

/* A block of rows stays in the cache for all tokens. */
static void linear_many(const gb_linear *l, size_t first, size_t end, gb_lanes (*sums)[BLOCK_ROWS]) {
    for (span rows = {first, 0}; rows.first < end; rows.first += rows.count) {
        rows.count = end - rows.first < BLOCK_ROWS ? end - rows.first : BLOCK_ROWS;
        for (span tokens = {0, 0}; tokens.first < l->tokens; tokens.first += BLOCK_TOKENS) {
            const size_t left = l->tokens - tokens.first;
            tokens.count = left < BLOCK_TOKENS ? left : BLOCK_TOKENS;
            linear_block(l, rows, tokens, sums);
        }
    }
}

void GB_FOR_ISA(gb_linear_bfloat16)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    if (l->tokens > FEW_TOKENS)
        linear_many(l, first, end, scratch);
    else
        linear_few(l, first, end);
}
