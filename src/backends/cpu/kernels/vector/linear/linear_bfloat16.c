/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/linear/linear_blocks.h"
#include "backends/cpu/kernels/vector/linear/pairs.h"

/* Both matrices are read as they lie in memory. With many tokens blocks along k keep the inputs of a block of
 * tokens in the cache. */

enum {
    FEW_TOKENS = 15,
    FETCH_AHEAD = 8192,      /* bytes of one stream of rows: what memory delivers while it answers */
    PAGE_AHEAD = 128 * 1024, /* so that a page is found by the time it is read */
    BLOCK_INPUTS = 2048      /* a multiple of 32 */
};

_Static_assert(sizeof(gb_waiting_sums) <= GB_LINEAR_SCRATCH, "the scratch holds the sums");

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
    float all[GB_TILE_SUMS];
    gb_sum_tile(rows, columns, sums, all);
    for (int c = 0; c < columns; c++)
        memcpy(gb_linear_result(l, token + (size_t)c) + row, all + c * rows, (size_t)rows * sizeof *all);
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

GB_INLINE void add_tile(const gb_linear *l, int rows, int columns, const gb_tile_place *at,
                        gb_waiting_sums waiting) {
    const uint16_t *x[GB_TILE_COLUMNS];
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
    point_at_rows(l, at->tokens.first + at->token, at->inputs.first, columns, x);
    gb_begin_tile(rows, columns, at, waiting, sums);
    gb_add_pair_tile(rows, columns, weight_row(l, at->rows.first + at->row) + at->inputs.first,
                     l->weight_stride, x, at->inputs.count, 0, sums);
    gb_end_tile(l, rows, columns, at, waiting, sums);
}

GB_INLINE void add_rows(const gb_linear *l, int rows, gb_tile_place at, gb_waiting_sums waiting) {
    for (; at.tokens.count - at.token >= GB_TILE_COLUMNS; at.token += GB_TILE_COLUMNS)
        add_tile(l, rows, GB_TILE_COLUMNS, &at, waiting);
    for (; at.token < at.tokens.count; at.token++)
        add_tile(l, rows, 1, &at, waiting);
}

static void linear_block(const gb_linear *l, gb_block_span rows, gb_block_span tokens, void *waiting) {
    gb_tile_place at = {.rows = rows, .tokens = tokens};
    for (size_t input = 0; input < l->inputs; input += BLOCK_INPUTS) {
        at.inputs = gb_next_span(input, l->inputs, BLOCK_INPUTS);
        at.row = 0;
        for (; rows.count - at.row >= GB_TILE_ROWS; at.row += GB_TILE_ROWS)
            add_rows(l, GB_TILE_ROWS, at, waiting);
        for (; at.row < rows.count; at.row++)
            add_rows(l, 1, at, waiting);
    }
}

void GB_FOR_ISA(gb_linear_bfloat16)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    if (l->tokens > FEW_TOKENS)
        gb_for_blocks(l, first, end, scratch, linear_block);
    else
        linear_few(l, first, end);
}
