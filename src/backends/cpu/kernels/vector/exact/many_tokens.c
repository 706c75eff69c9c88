/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/exact/exact.h"

/* A few blocks of rows are made bytes once for all tokens and then stay in the second cache. Activations are
 * read where they lie. */

enum {
    MOST_TOKENS = 256,
    MOST_TILES = (MOST_TOKENS + GB_TOKENS - 1) / GB_TOKENS,
    MOST_INPUTS = 8192,                          /* of blocks that are expanded at once: whole groups */
    BLOCK_BYTES = MOST_INPUTS * GB_ROWS + 5 * 64 /* so blocks do not share sets of the nearest cache */
};

/* Some tokens with the blocks that are computed. */
typedef struct panel {
    _Alignas(64) uint8_t bytes[GB_BLOCKS][BLOCK_BYTES]; /* where they are not used in place */
    _Alignas(64) gb_tile_sums sums[MOST_TILES];
    int32_t starts[MOST_TOKENS];
    size_t token, tokens;
    size_t row, first, end; /* row 0 of the blocks in the matrix, and the rows that are wanted */
    size_t blocks;
} panel;

_Static_assert(sizeof(panel) <= GB_LINEAR_SCRATCH, "the scratch holds a panel");

/* Some of k. */
typedef struct range {
    size_t first, count;
} range;

/* ---- Weights ------------------------------------------------------------------------------------------- */

static const uint8_t *codes_at(const gb_linear *l, size_t row, size_t input) {
    const gb_plane *plane = &l->quantized->planes.codes;
    const size_t bits = l->quantized->format.bits == 8 ? 8 : 4;
    return (const uint8_t *)l->quantized->data + plane->offset + row * plane->row_bytes +
           input * bits * (GB_ROWS / 8);
}

/* Codes of 8 bits are bytes already. */
static void place_bytes(const gb_linear *l, panel *p, range k, gb_byte_tile *tile) {
    tile->blocks = codes_at(l, p->row, k.first);
    tile->block_bytes = l->quantized->planes.codes.row_bytes * GB_ROWS;
#if GB_HAS_WIDE_DOTS
    if (l->quantized->format.bits == 8)
        return;
    tile->blocks = p->bytes[0];
    tile->block_bytes = sizeof p->bytes[0];
    for (size_t b = 0; b < p->blocks; b++)
        GB_FOR_ISA(gb_expand_block)(l->quantized, p->row + b * GB_ROWS, k.first, k.count, p->bytes[b]);
#endif
}

/* Has a tile prefetch its part of the codes of the blocks after these. */
static void fetch_next(const gb_linear *l, const panel *p, size_t index, size_t tiles, gb_byte_tile *tile) {
    const size_t rows = p->blocks * GB_ROWS, bytes = rows * l->quantized->planes.codes.row_bytes;
    const size_t steps = l->inputs / 4 * tiles;
    const bool is_last = p->row + rows >= p->end;
    tile->next = codes_at(l, p->row, 0);
    tile->next_step = is_last ? 0 : (bytes + steps - 1) / steps;
    if (!is_last)
        tile->next += bytes + bytes * index / tiles;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* The wanted rows of a block. */
GB_INLINE void store_rows(const gb_linear *l, const panel *p, size_t block, size_t token, gb_lanes y) {
    const size_t row = p->row + block * GB_ROWS, first = p->first > row ? p->first - row : 0;
    const size_t left = p->end - row, end = left < GB_ROWS ? left : GB_ROWS;
    float *to = gb_linear_result(l, token) + (row + first - l->first_row);
    if (end - first == GB_ROWS) {
        gb_store_lanes(to, y);
        return;
    }
    _Alignas(64) float rows[GB_ROWS];
    gb_store_lanes(rows, y);
    memcpy(to, rows + first, (end - first) * sizeof *to);
}

/* The results' lines are prefetched before they are needed. */
static void begin_sums(const gb_linear *l, const panel *p, size_t first, size_t count, gb_tile_sums sums) {
    const size_t row = p->row > p->first ? p->row : p->first;
    for (size_t b = 0; b < p->blocks; b++)
        for (size_t t = 0; t < count; t++) {
            const float *result = gb_linear_result(l, p->token + first + t) + (row - l->first_row);
            __builtin_prefetch((const void *)((uintptr_t)result + b * GB_ROWS * sizeof *result), 1);
            const gb_wide start = gb_fill_wide(p->starts[first + t]);
            memcpy(sums[b][t], &start, sizeof start);
        }
}

static void end_sums(const gb_linear *l, const panel *p, size_t first, size_t count, gb_tile_sums sums) {
    for (size_t b = 0; b < p->blocks; b++) {
        const gb_lanes scales =
            gb_load_row_scales(gb_row_scales(l->quantized, p->row + b * GB_ROWS), l->quantized->format.scale);
        for (size_t t = 0; t < count; t++) {
            const size_t token = p->token + first + t;
            gb_wide sum;
            memcpy(&sum, sums[b][t], sizeof sum);
            store_rows(l, p, b, token,
                       gb_finish_sum(sum, l->activations->scales[gb_linear_input_row(l, token)], scales));
        }
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

static void add_tiles(const gb_linear *l, panel *p, range k) {
    const gb_activations *x = l->activations;
    const size_t tiles = (p->tokens + GB_TOKENS - 1) / GB_TOKENS;
    gb_byte_tile tile = {.block_count = p->blocks, .inputs = k.count, .next = codes_at(l, p->row, 0)};
    place_bytes(l, p, k, &tile);
    for (size_t i = 0; i < tiles; i++) {
        const size_t first = p->tokens * i / tiles;
        tile.tokens = p->tokens * (i + 1) / tiles - first;
        for (size_t t = 0; t < tile.tokens; t++)
            tile.codes[t] = x->codes + gb_linear_input_row(l, p->token + first + t) * x->stride + k.first;
        if (k.first == 0) {
            begin_sums(l, p, first, tile.tokens, p->sums[i]);
            fetch_next(l, p, i, tiles, &tile);
        }
        GB_FOR_ISA(gb_add_byte_tile)(&tile, p->sums[i]);
        if (k.first + k.count == l->inputs)
            end_sums(l, p, first, tile.tokens, p->sums[i]);
    }
}

static void multiply_panel(const gb_linear *l, panel *p, size_t first, size_t end) {
    for (size_t t = 0; t < p->tokens; t++)
        p->starts[t] = gb_exact_start(l, p->token + t);
    p->first = first;
    p->end = end;
    for (p->row = first / GB_ROWS * GB_ROWS; p->row < end; p->row += p->blocks * GB_ROWS) {
        const size_t left = (end - p->row + GB_ROWS - 1) / GB_ROWS;
        p->blocks = left / ((left + GB_BLOCKS - 1) / GB_BLOCKS);
        for (range k = {0, 0}; k.first < l->inputs; k.first += k.count) {
            k.count = l->inputs - k.first < MOST_INPUTS ? l->inputs - k.first : MOST_INPUTS;
            add_tiles(l, p, k);
        }
    }
}

void GB_FOR_ISA(gb_linear_exact_many)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    panel *p = scratch;
    for (p->token = 0; p->token < l->tokens; p->token += p->tokens) {
        const size_t left = l->tokens - p->token;
        p->tokens = left < MOST_TOKENS ? left : MOST_TOKENS;
        multiply_panel(l, p, l->first_row + first, l->first_row + end);
    }
}
