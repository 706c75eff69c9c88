/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

/* The activations of a panel (some tokens, some inputs) are put in the order in which kernels read them, once
 * for all rows. Then, block of rows by block and piece by piece, the weight is read once for all tiles. Where
 * inputs are cut, the results wait in y, so that their order along k is the same. */

enum {
    ROWS = 16,
    PANEL_CODES = 192 * 1024, /* tokens times inputs: they stay in the second cache */
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

/* ---- Products with a block of rows --------------------------------------------------------------------- */

/* The codes of a block from an input on; the piece's sizes are set. */
static void find_codes(const gb_quantized_matrix *matrix, size_t row, size_t first, gb_piece *piece) {
    const uint8_t *block =
        (const uint8_t *)matrix->data + matrix->planes.codes.offset + row * matrix->planes.codes.row_bytes;
    const uint32_t bits = matrix->format.bits, low_bits = bits == 8 ? 8 : 4;
    const size_t row_inputs = matrix->planes.codes.row_bytes * 8 / bits;
    piece->low = block + first * ROWS * low_bits / 8;
    piece->high = block + (row_inputs * low_bits + first * (bits - low_bits)) * ROWS / 8;
}

/* Which of the block's rows are wanted: row of the matrix is row 0 of the block, and result of y. */
typedef struct block {
    size_t row, first, end; /* first .. end - 1 of 0 .. 15 */
    size_t result;          /* of row `first` */
} block;

/* Kernels write whole blocks: where only some rows are wanted, beside the results. */
static void add_tile(const gb_linear *l, const panel *p, const block *b, const gb_piece *piece,
                     gb_tile_of_tokens *tile, size_t token) {
    const bool is_whole = b->end - b->first == ROWS;
    const size_t bytes = (b->end - b->first) * sizeof(float);
    _Alignas(64) float beside[GB_TOKENS][ROWS] = {0};
    for (size_t t = 0; t < tile->tokens; t++) {
        float *y = gb_linear_result(l, p->token + token + t) + b->result;
        tile->y[t] = is_whole ? y : beside[t];
        if (!is_whole && !tile->is_first)
            memcpy(beside[t] + b->first, y, bytes);
    }
    GB_FOR_ISA(gb_add_piece)(l->quantized->format.bits, piece, tile);
    for (size_t t = 0; !is_whole && t < tile->tokens; t++)
        memcpy(gb_linear_result(l, p->token + token + t) + b->result, beside[t] + b->first, bytes);
}

static void add_piece_to_tiles(const gb_linear *l, const panel *p, const block *b, const gb_piece *piece,
                               size_t first) {
    const size_t group = first / piece->group;
    for (size_t t = 0; t < p->tokens; t = tile_end(p, t)) {
        gb_tile_of_tokens tile = {.tokens = tile_end(p, t) - t, .is_first = p->first + first == 0};
        const size_t at = t * p->groups + group * tile.tokens;
        tile.codes = p->codes + t * p->padded + first * tile.tokens;
        tile.scales = p->scales + at;
        tile.sums = p->sums + at;
        tile.starts = p->starts + at;
        add_tile(l, p, b, piece, &tile, t);
    }
}

static void add_block(const gb_linear *l, const panel *p, const block *b) {
    _Alignas(64) float scales[GB_PIECE_GROUPS * ROWS], biases[GB_PIECE_GROUPS * ROWS];
    const gb_quantized_matrix *matrix = l->quantized;
    const bool is_per_row = matrix->format.group == 0;
    gb_piece piece = {.group = l->activations->group,
                      .has_bias = matrix->format.has_bias,
                      .scale_step = is_per_row ? 0 : ROWS,
                      .scales = scales,
                      .biases = biases};
    const size_t most = gb_piece_inputs(piece.group);
    for (size_t first = 0; first < p->inputs; first += piece.inputs) {
        piece.inputs = p->inputs - first < most ? p->inputs - first : most;
        find_codes(matrix, b->row, p->first + first, &piece);
        if (is_per_row)
            GB_FOR_ISA(gb_expand_scales)(matrix, b->row, 0, 1, scales, biases);
        else
            GB_FOR_ISA(gb_expand_scales)
        (matrix, b->row, (p->first + first) / piece.group, piece.inputs / piece.group, scales, biases);
        add_piece_to_tiles(l, p, b, &piece, first);
    }
}

static void add_panel(const gb_linear *l, const panel *p, size_t first, size_t end) {
    for (size_t row = first; row < end;) {
        const size_t of_matrix = l->first_row + row, left = end - row;
        block b = {.row = of_matrix / ROWS * ROWS, .first = of_matrix % ROWS, .result = row};
        b.end = left < ROWS - b.first ? b.first + left : ROWS;
        add_block(l, p, &b);
        row += b.end - b.first;
    }
}

void GB_FOR_ISA(gb_linear_interleaved)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    panel *p = scratch;
    const size_t piece = gb_piece_inputs(l->activations->group);
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
