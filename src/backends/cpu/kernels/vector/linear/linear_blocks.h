/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with many tokens in blocks of rows, tokens and inputs. The partial sums of a tile begin at 0, wait
 * in memory between blocks of inputs, and become results after the last, so that their order is the same.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LINEAR_LINEAR_BLOCKS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LINEAR_LINEAR_BLOCKS_H

#include "backends/cpu/kernels/vector/lanes/tile.h"
#include "backends/cpu/kernels/vector/vector_sources.h"

enum { GB_BLOCK_TOKENS = 64, GB_BLOCK_ROWS = 16 };

typedef struct gb_block_span {
    size_t first, count;
} gb_block_span;

typedef gb_lanes gb_waiting_sums[GB_BLOCK_TOKENS][GB_BLOCK_ROWS];

GB_INLINE gb_block_span gb_next_span(size_t first, size_t end, size_t most) {
    return (gb_block_span){first, end - first < most ? end - first : most};
}

typedef struct gb_tile_place {
    gb_block_span rows, tokens, inputs; /* the block's, of the weight, of x, and of both along k */
    size_t row, token;                  /* the tile's first ones, counted from the block's */
} gb_tile_place;

/* sums[r][c]: 0 in the first block of inputs, or what waits of the tile's row r and token c. */
GB_INLINE void gb_begin_tile(int rows, int columns, const gb_tile_place *at, gb_waiting_sums waiting,
                             gb_lanes sums[][GB_TILE_COLUMNS]) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sums[r][c] =
                at->inputs.first == 0 ? gb_zero_lanes() : waiting[at->token + (size_t)c][at->row + (size_t)r];
}

/* Has the sums wait, or stores y where these were the last inputs. */
GB_INLINE void gb_end_tile(const gb_linear *l, int rows, int columns, const gb_tile_place *at,
                           gb_waiting_sums waiting, gb_lanes sums[][GB_TILE_COLUMNS]) {
    if (at->inputs.first + at->inputs.count < l->inputs) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int c = 0; c < columns; c++)
                waiting[at->token + (size_t)c][at->row + (size_t)r] = sums[r][c];
        return;
    }
    float all[GB_TILE_SUMS];
    gb_sum_tile(rows, columns, sums, all);
    for (int c = 0; c < columns; c++)
        memcpy(gb_linear_result(l, at->tokens.first + at->token + (size_t)c) + at->rows.first + at->row,
               all + c * rows, (size_t)rows * sizeof *all);
}

/* A block of rows is read from memory once for all tokens. Rows are cut where those of l->first_row are. */
GB_INLINE void gb_for_blocks(const gb_linear *l, size_t first, size_t end, void *scratch,
                             void (*run)(const gb_linear *l, gb_block_span rows, gb_block_span tokens,
                                         void *scratch)) {
    gb_block_span rows, tokens;
    for (size_t row = first; row < end; row += rows.count) {
        rows = gb_next_span(row, end, GB_BLOCK_ROWS - (l->first_row + row) % GB_BLOCK_ROWS);
        for (size_t token = 0; token < l->tokens; token += tokens.count) {
            tokens = gb_next_span(token, l->tokens, GB_BLOCK_TOKENS);
            run(l, rows, tokens, scratch);
        }
    }
}

#endif
