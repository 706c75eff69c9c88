/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/linear/linear_blocks.h"

/* With few tokens the weights are read once and everything else is small: rows are taken from memory as they
 * are. With many tokens the arithmetic counts: a block of weights is widened to float32 once for all tokens
 * of a block, and blocks along k keep x in the cache. */

enum {
    FEW_TOKENS = 15,
    FEW_QUANTIZED = 3,               /* for more, rows are dequantized once for all */
    FETCH_AHEAD = 64 * 1024,         /* bytes; the hardware alone stops at the end of each page */
    FETCH_AHEAD_ONE = 8192,          /* of one stream of rows: what memory delivers while it answers */
    PAGE_AHEAD = 128 * 1024,         /* so that a page is found by the time it is read */
    BLOCK_INPUTS = 1024,             /* a multiple of 16 */
    PANEL_STRIDE = BLOCK_INPUTS + 16 /* so that rows of a panel do not share the sets of a cache */
};

typedef struct workspace {
    gb_waiting_sums sums;
    float panel[GB_BLOCK_ROWS * PANEL_STRIDE];
} workspace;

_Static_assert(sizeof(workspace) <= GB_LINEAR_SCRATCH, "the scratch holds a workspace");
_Static_assert(BLOCK_INPUTS % GB_DEQUANTIZED_SPAN == 0, "spans do not cross blocks");
_Static_assert((int)GB_BLOCK_ROWS == GB_DEQUANTIZED_ROWS, "a block of the packing is a panel");

/* Rows of x from token on, each from element index on. */
GB_INLINE void point_at_rows(const gb_linear *l, size_t token, size_t index, int columns, const float **x) {
    for (int c = 0; c < columns; c++)
        x[c] = gb_linear_input(l, token + (size_t)c) + index;
}

GB_INLINE void dot_rows(const gb_linear *l, gb_dtype dtype, int rows, int columns, size_t row, size_t token) {
    const float *x[GB_TILE_COLUMNS];
    float sums[GB_TILE_COLUMNS][GB_TILE_ROWS];
    const size_t ahead = l->tokens == 1 ? FETCH_AHEAD_ONE : token == 0 ? FETCH_AHEAD : 0;
    point_at_rows(l, token, 0, columns, x);
    gb_dot_tile(rows, columns, gb_matrix_row(l->weight, dtype, l->weight_stride, row), dtype,
                l->weight_stride, x, l->inputs, ahead, sums[0], 1, GB_TILE_ROWS);
    for (int c = 0; c < columns; c++)
        memcpy(gb_linear_result(l, token + (size_t)c) + row, sums[c], (size_t)rows * sizeof(float));
}

/* rows weight rows with all tokens. */
GB_INLINE void dot_all_tokens(const gb_linear *l, gb_dtype dtype, int rows, size_t row) {
    size_t token = 0;
    for (; l->tokens - token >= GB_TILE_COLUMNS; token += GB_TILE_COLUMNS)
        dot_rows(l, dtype, rows, GB_TILE_COLUMNS, row, token);
#if GB_VECTOR_LANES >= 8
    for (; l->tokens - token >= 2; token += 2)
        dot_rows(l, dtype, rows, 2, row, token);
#endif
    for (; token < l->tokens; token++)
        dot_rows(l, dtype, rows, 1, row, token);
}

/* Several tokens read x again for each pass over rows; one token has rows one after the other, since more
 * streams at once make memory slower. */
GB_INLINE void linear_few(const gb_linear *l, gb_dtype dtype, size_t first, size_t end) {
    size_t row = first;
    for (; l->tokens > 1 && end - row >= GB_TILE_ROWS; row += GB_TILE_ROWS)
        dot_all_tokens(l, dtype, GB_TILE_ROWS, row);
    for (; row < end; row++) {
        gb_fetch_ahead(gb_matrix_row(l->weight, dtype, l->weight_stride, row), PAGE_AHEAD);
        dot_all_tokens(l, dtype, 1, row);
    }
}

GB_INLINE void add_tile(const gb_linear *l, int rows, int columns, const float *weight, size_t stride,
                        const gb_tile_place *at, gb_waiting_sums waiting) {
    const float *x[GB_TILE_COLUMNS];
    gb_lanes sums[GB_TILE_ROWS][GB_TILE_COLUMNS];
    const size_t count = at->inputs.count;
    point_at_rows(l, at->tokens.first + at->token, at->inputs.first, columns, x);
    gb_begin_tile(rows, columns, at, waiting, sums);
    gb_add_tile(rows, columns, weight, GB_F32, stride, x, count - count % GB_LANES, 0, sums);
    gb_add_tile_tail(rows, columns, weight, GB_F32, stride, x, count, sums);
    gb_end_tile(l, rows, columns, at, waiting, sums);
}

GB_INLINE void add_rows(const gb_linear *l, int rows, const float *weight, size_t stride, gb_tile_place at,
                        gb_waiting_sums waiting) {
    for (; at.tokens.count - at.token >= GB_TILE_COLUMNS; at.token += GB_TILE_COLUMNS)
        add_tile(l, rows, GB_TILE_COLUMNS, weight, stride, &at, waiting);
    for (; at.token < at.tokens.count; at.token++)
        add_tile(l, rows, 1, weight, stride, &at, waiting);
}

/* The weight rows' block as float32: in place, or widened or dequantized into the panel. */
static const float *widened_block(const gb_linear *l, size_t row, size_t rows, gb_block_span inputs,
                                  float *panel, size_t *stride) {
    *stride = PANEL_STRIDE;
    if (l->quantized) {
        for (size_t r = 0; r < rows; r++)
            GB_FOR_ISA(gb_dequantize)
        (l->quantized, l->first_row + row + r, inputs.first, inputs.count, panel + r * PANEL_STRIDE);
        return panel;
    }
    if (l->dtype == GB_F32) {
        *stride = l->weight_stride;
        return (const float *)l->weight + row * l->weight_stride + inputs.first;
    }
    for (size_t r = 0; r < rows; r++) {
        const uint16_t *from = (const uint16_t *)l->weight + (row + r) * l->weight_stride + inputs.first;
        GB_FOR_ISA(gb_widen)(from, l->dtype, inputs.count, panel + r * PANEL_STRIDE);
    }
    return panel;
}

static bool is_interleaved(const gb_linear *l) {
    return l->quantized && l->quantized->is_interleaved;
}

/* The panel has all rows of the packing's block, from which these begin at the one returned. */
static const float *dequantized_block(const gb_linear *l, size_t row, gb_block_span inputs, float *panel) {
    const size_t in_block = (l->first_row + row) % GB_BLOCK_ROWS;
    GB_FOR_ISA(gb_dequantize_block)
    (l->quantized, l->first_row + row - in_block, inputs.first, inputs.count, panel, PANEL_STRIDE);
    return panel + in_block * PANEL_STRIDE;
}

static void linear_block(const gb_linear *l, gb_block_span rows, gb_block_span tokens, void *scratch) {
    workspace *space = scratch;
    gb_tile_place at = {.rows = rows, .tokens = tokens};
    const float *block = NULL;
    for (size_t input = 0; input < l->inputs; input += BLOCK_INPUTS) {
        at.inputs = gb_next_span(input, l->inputs, BLOCK_INPUTS);
        if (is_interleaved(l))
            block = dequantized_block(l, rows.first, at.inputs, space->panel);
        for (at.row = 0; at.row < rows.count;) {
            const size_t height = rows.count - at.row >= GB_TILE_ROWS ? GB_TILE_ROWS : 1;
            size_t stride = PANEL_STRIDE;
            const float *weight =
                block ? block + at.row * PANEL_STRIDE
                      : widened_block(l, rows.first + at.row, height, at.inputs, space->panel, &stride);
            if (height == GB_TILE_ROWS)
                add_rows(l, GB_TILE_ROWS, weight, stride, at, space->sums);
            else
                add_rows(l, 1, weight, stride, at, space->sums);
            at.row += height;
        }
    }
}

void GB_FOR_ISA(gb_linear)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    if (l->tokens <= FEW_QUANTIZED && is_interleaved(l))
        GB_FOR_ISA(gb_linear_token_float)(l, first, end);
    else if (l->tokens > FEW_TOKENS || l->quantized)
        gb_for_blocks(l, first, end, scratch, linear_block);
    else if (l->dtype == GB_F32)
        linear_few(l, GB_F32, first, end);
    else if (l->dtype == GB_BF16)
        linear_few(l, GB_BF16, first, end);
    else
        linear_few(l, GB_F16, first, end);
}
