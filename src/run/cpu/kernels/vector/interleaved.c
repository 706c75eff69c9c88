/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

/* The activations of a panel (some tokens, some inputs) are put in the order in which kernels read them, once
 * for all rows. Then, block of rows by block and piece by piece, the weight is read once for all tiles. Where
 * inputs are cut, the results wait in y, so that their order along k is the same. */

enum {
    ROWS = 16,
    PANEL_CODES = 384 * 1024, /* tokens times inputs: they stay in the second cache */
    PANEL_TOKENS = 64,
    PANEL_GROUPS = PANEL_CODES / GB_UNIT
};

typedef struct panel {
    int8_t codes[PANEL_CODES]; /* [tiles, units, tokens of the tile, 16] */
    float scales[PANEL_GROUPS], sums[PANEL_GROUPS];
    int32_t starts[PANEL_GROUPS];
    size_t token, tokens;
    size_t first, inputs, padded; /* padded to whole units */
    size_t groups;
} panel;

_Static_assert(sizeof(panel) <= GB_LINEAR_SCRATCH, "the scratch holds a panel");
_Static_assert(PANEL_CODES / PANEL_TOKENS >= GB_PIECE_INPUTS, "a panel has a whole piece");

static size_t tile_end(const panel *p, size_t t) {
    return p->tokens - t < GB_TOKENS ? p->tokens : t + GB_TOKENS;
}

/* ---- Filling a panel ----------------------------------------------------------------------------------- */

static void copy_codes(const int8_t *from, size_t inputs, size_t tokens, int8_t *to) {
    size_t units = inputs / GB_UNIT, left = inputs % GB_UNIT;
    for (size_t u = 0; u < units; u++)
        memcpy(to + u * tokens * GB_UNIT, from + u * GB_UNIT, GB_UNIT);
    if (left > 0)
        memcpy(to + units * tokens * GB_UNIT, from + units * GB_UNIT, left);
}

/* Products are summed of c * (q - GB_BYTE_OFFSET) or of c * q, and center has yet to be taken off. */
static int32_t start_of(const gb_format *format, int32_t code_sum) {
    int32_t offset = format->bits == 8 ? GB_BYTE_OFFSET : 0;
    return (offset - gb_format_center(format)) * code_sum;
}

static void fill_tile(const gb_linear *l, panel *p, size_t t, size_t tokens) {
    const gb_activations *x = l->activations;
    size_t group = p->first / x->group;
    for (size_t c = 0; c < tokens; c++) {
        size_t row = gb_linear_input_row(l, p->token + t + c), from = row * x->groups + group;
        copy_codes(x->codes + row * x->stride + p->first, p->inputs, tokens,
                   p->codes + t * p->padded + c * GB_UNIT);
        for (size_t g = 0; g < p->groups; g++) {
            size_t to = t * p->groups + g * tokens + c;
            p->scales[to] = x->scales[from + g];
            p->sums[to] = x->sums[from + g];
            p->starts[to] = start_of(&l->quantized->format, x->code_sums[from + g]);
        }
    }
}

static void fill_panel(const gb_linear *l, panel *p) {
    const size_t group = l->activations->group;
    p->padded = (p->inputs + GB_UNIT - 1) / GB_UNIT * GB_UNIT;
    p->groups = (p->inputs + group - 1) / group;
    for (size_t t = 0; t < p->tokens; t = tile_end(p, t))
        fill_tile(l, p, t, tile_end(p, t) - t);
}

/* ---- Products with blocks of rows ---------------------------------------------------------------------- */

/* The codes of a block from an input on. */
static void find_codes(const gb_quantized_matrix *matrix, size_t row, size_t first, gb_block_piece *piece) {
    const uint8_t *block =
        (const uint8_t *)matrix->data + matrix->planes.codes.offset + row * matrix->planes.codes.row_bytes;
    const uint32_t bits = matrix->format.bits, low_bits = bits == 8 ? 8 : 4;
    const size_t row_inputs = matrix->planes.codes.row_bytes * 8 / bits;
    piece->low = block + first * ROWS * low_bits / 8;
    piece->high = block + (row_inputs * low_bits + first * (bits - low_bits)) * ROWS / 8;
}

/* Row of the matrix is row 0 of the block, of which first .. end - 1 are wanted: rows `result` .. of y. */
typedef struct block {
    size_t row, first, end, result;
    float y[PANEL_TOKENS][ROWS]; /* in one place, since rows of the real y often share sets of the cache */
    float scales[GB_PIECE_GROUPS * ROWS], biases[GB_PIECE_GROUPS * ROWS];
} block;

/* Blocks that are computed together, each 64-byte aligned. */
typedef struct blocks {
    _Alignas(64) block block[GB_BLOCKS];
    size_t count;
} blocks;

/* A tile of one token takes one block at a time. */
static void add_tile(int bits, gb_piece *piece, blocks *b, size_t t) {
    for (size_t i = 0; i < GB_BLOCKS; i++)
        piece->blocks[i].y = b->block[i].y + t;
    GB_FOR_ISA(gb_add_piece)(bits, piece);
    gb_piece next = *piece;
    for (size_t i = 1; piece->tokens == 1 && i < b->count; i++) {
        next.blocks[0] = piece->blocks[i];
        GB_FOR_ISA(gb_add_piece)(bits, &next);
    }
}

static void add_piece_to_tiles(const gb_linear *l, const panel *p, blocks *b, gb_piece *piece, size_t first) {
    const size_t group = first / piece->group;
    for (size_t t = 0; t < p->tokens; t = tile_end(p, t)) {
        piece->tokens = tile_end(p, t) - t;
        const size_t at = t * p->groups + group * piece->tokens;
        piece->codes = p->codes + t * p->padded + first * piece->tokens;
        piece->scales = p->scales + at;
        piece->sums = p->sums + at;
        piece->starts = p->starts + at;
        add_tile(l->quantized->format.bits, piece, b, t);
    }
}

/* Where there are fewer than GB_BLOCKS, the last one is computed again instead of the missing ones. */
static void add_pieces(const gb_linear *l, const panel *p, blocks *b) {
    const gb_quantized_matrix *matrix = l->quantized;
    const bool is_per_row = matrix->format.group == 0;
    gb_piece piece = {.group = l->activations->group,
                      .has_bias = matrix->format.has_bias,
                      .scale_step = is_per_row ? 0 : ROWS};
    const size_t most = gb_piece_inputs(piece.group, gb_blocks_for(p->tokens));
    for (size_t first = 0; first < p->inputs; first += piece.inputs) {
        piece.inputs = p->inputs - first < most ? p->inputs - first : most;
        const size_t group = is_per_row ? 0 : (p->first + first) / piece.group;
        const size_t groups = is_per_row ? 1 : piece.inputs / piece.group;
        for (size_t i = 0; i < GB_BLOCKS; i++) {
            block *of = &b->block[i < b->count ? i : b->count - 1];
            find_codes(matrix, of->row, p->first + first, &piece.blocks[i]);
            piece.blocks[i].scales = of->scales;
            piece.blocks[i].biases = of->biases;
            if (i < b->count)
                GB_FOR_ISA(gb_expand_scales)(matrix, of->row, group, groups, of->scales, of->biases);
        }
        add_piece_to_tiles(l, p, b, &piece, first);
    }
}

/* What y has of the block's rows: whole blocks are copied without a call. */
GB_INLINE void copy_results(const block *b, const float *from, float *to) {
    if (b->end - b->first == ROWS)
        memcpy(to, from, ROWS * sizeof *to);
    else
        memcpy(to, from, (b->end - b->first) * sizeof *to);
}

/* The results' lines are asked for before they are needed. */
static void begin_block(const gb_linear *l, const panel *p, block *b) {
    for (size_t t = 0; t < p->tokens; t++)
        __builtin_prefetch(gb_linear_result(l, p->token + t) + b->result, 1);
    memset(b->y, 0, p->tokens * sizeof b->y[0]);
    for (size_t t = 0; p->first > 0 && t < p->tokens; t++)
        copy_results(b, gb_linear_result(l, p->token + t) + b->result, b->y[t] + b->first);
}

static void end_block(const gb_linear *l, const panel *p, const block *b) {
    for (size_t t = 0; t < p->tokens; t++)
        copy_results(b, b->y[t] + b->first, gb_linear_result(l, p->token + t) + b->result);
}

static void add_blocks(const gb_linear *l, const panel *p, blocks *b) {
    for (size_t i = 0; i < b->count; i++)
        begin_block(l, p, &b->block[i]);
    add_pieces(l, p, b);
    for (size_t i = 0; i < b->count; i++)
        end_block(l, p, &b->block[i]);
}

static void add_panel(const gb_linear *l, const panel *p, size_t first, size_t end) {
    blocks b;
    for (size_t row = first; row < end;) {
        for (b.count = 0; b.count < gb_blocks_for(p->tokens) && row < end; b.count++) {
            block *of = &b.block[b.count];
            const size_t of_matrix = l->first_row + row, left = end - row;
            of->row = of_matrix / ROWS * ROWS;
            of->first = of_matrix % ROWS;
            of->end = left < ROWS - of->first ? of->first + left : ROWS;
            of->result = row;
            row += of->end - of->first;
        }
        add_blocks(l, p, &b);
    }
}

void GB_FOR_ISA(gb_linear_interleaved)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    panel *p = scratch;
    const size_t piece = gb_piece_inputs(l->activations->group, 1);
    for (p->token = 0; p->token < l->tokens; p->token += p->tokens) {
        const size_t left = l->tokens - p->token;
        p->tokens = left < PANEL_TOKENS ? left : PANEL_TOKENS;
        const size_t most = PANEL_CODES / p->tokens / piece * piece;
        for (p->first = 0; p->first < l->inputs; p->first += p->inputs) {
            p->inputs = l->inputs - p->first < most ? l->inputs - p->first : most;
            fill_panel(l, p);
            add_panel(l, p, first, end);
        }
    }
}
