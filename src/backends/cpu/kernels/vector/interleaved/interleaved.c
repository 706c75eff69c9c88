/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/interleaved.h"
#include "tensor/packing.h"

/* The activations of a panel (some tokens, some inputs) are put in the order in which kernels read them, once
 * for all rows. Then, block of rows by block and piece by piece, the weight is read once for all tiles. Where
 * inputs are cut, the results wait in y, so that their order along k is the same. */

enum {
    ROWS = 16,
    PANEL_CODES = 384 * 1024, /* tokens times inputs: they stay in the second cache */
    PANEL_TOKENS = 64,
    PANEL_GROUPS = PANEL_CODES / GB_UNIT,
    PANEL_UNIT = 2048, /* inputs are cut at multiples of it */
    PIECE_INPUTS =
        2048,         /* of all blocks together: their codes stay in the first cache while the tiles pass */
    PIECE_UNIT = 256, /* whole groups and super-groups */
    PIECE_GROUPS = 64,
    ONE_TOKEN_INPUTS = 512, /* while scales are expanded no codes are prefetched: so not many at once */
    LEAD_INPUTS = 1024      /* prefetch distance of codes */
};

typedef struct panel {
    int8_t codes[PANEL_CODES]; /* [tiles, units, tokens of the tile, 16] */
    float scales[PANEL_GROUPS], sums[PANEL_GROUPS];
    int32_t starts[PANEL_GROUPS];
    size_t token, tokens;
    size_t first, inputs, padded; /* padded to whole units */
    size_t groups;
    size_t piece_inputs; /* the most that a piece has */
    size_t lead;         /* inputs from those that are used to those that are prefetched */
} panel;

_Static_assert(sizeof(panel) <= GB_LINEAR_SCRATCH, "the scratch holds a panel");
_Static_assert((int)PANEL_CODES / (int)PANEL_TOKENS >= (int)PANEL_UNIT, "a panel has a whole piece");

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
            p->starts[to] = gb_start_factor(&l->quantized->format) * x->code_sums[from + g];
        }
    }
}

static size_t most_piece_inputs(const gb_linear *l, const panel *p) {
    const size_t by_groups = PIECE_GROUPS * l->activations->group;
    const size_t by_codes = PIECE_INPUTS / gb_blocks_for(p->tokens);
    if (l->quantized->format.kind != GB_FORMAT_TWO_LEVEL)
        return p->tokens == 1 ? p->inputs : by_codes;
    if (p->tokens == 1)
        return ONE_TOKEN_INPUTS;
    return by_groups < by_codes ? by_groups : by_codes;
}

static void fill_panel(const gb_linear *l, panel *p) {
    const size_t group = l->activations->group;
    p->padded = (p->inputs + GB_UNIT - 1) / GB_UNIT * GB_UNIT;
    p->groups = (p->inputs + group - 1) / group;
    p->piece_inputs = most_piece_inputs(l, p);
    p->lead = p->inputs < LEAD_INPUTS ? p->inputs
                                      : LEAD_INPUTS - (PIECE_UNIT - p->inputs % PIECE_UNIT) % PIECE_UNIT;
    for (size_t t = 0; t < p->tokens; t = tile_end(p, t))
        fill_tile(l, p, t, tile_end(p, t) - t);
}

/* ---- Products with blocks of rows ---------------------------------------------------------------------- */

/* Where a block's codes begin, and how many bytes of them 16 rows have for an input, in eighths. */
typedef struct code_planes {
    const uint8_t *low, *high;
    size_t low_bits, high_bits;
} code_planes;

static code_planes find_codes(const gb_quantized_matrix *matrix, size_t row) {
    const gb_plane *plane = &matrix->planes.codes;
    const size_t bits = matrix->format.bits, low_bits = gb_low_bits(matrix->format.bits);
    const uint8_t *block = (const uint8_t *)matrix->data + plane->offset + row * plane->row_bytes;
    return (code_planes){block, block + plane->row_bytes * ROWS / bits * low_bits, low_bits, bits - low_bits};
}

/* Row of the matrix is row 0 of the block, of which first .. end - 1 are wanted: rows `result` .. of y. */
typedef struct block {
    size_t row, first, end, result;
    bool is_last;
    code_planes codes, next; /* its own, and unless it is the last, those of the block that comes after it */
    /* In one place, since rows of the real y often share sets of the cache. */
    _Alignas(64) float y[PANEL_TOKENS][ROWS];
    float scales[PIECE_GROUPS * ROWS], biases[PIECE_GROUPS * ROWS]; /* of two levels */
} block;

/* Blocks that are computed together. */
typedef struct blocks {
    block block[GB_BLOCKS];
    size_t count;
} blocks;

/* A tile of one token takes one block at a time. */
static void add_tile(int kind, gb_piece *piece, blocks *b, size_t t) {
    for (size_t i = 0; i < GB_BLOCKS; i++)
        piece->blocks[i].y = b->block[i].y + t;
    GB_FOR_ISA(gb_add_piece)(kind, piece);
    gb_piece next = *piece;
    for (size_t i = 1; piece->tokens == 1 && i < b->count; i++) {
        next.blocks[0] = piece->blocks[i];
        GB_FOR_ISA(gb_add_piece)(kind, &next);
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
        add_tile(gb_kind_of(&l->quantized->format), piece, b, t);
    }
}

static const uint8_t *codes_at(const uint8_t *plane, size_t input, size_t bits) {
    return plane + input * bits * (ROWS / 8);
}

/* The codes from input `first` on, and those `lead` inputs further on, in this block or in the one that comes
 * after it; where there is none nothing new is prefetched. */
static void place_codes(const panel *p, const block *b, size_t first, gb_block_piece *piece) {
    const code_planes *own = &b->codes;
    const bool is_here = first + p->lead < p->inputs;
    const code_planes *then = is_here ? own : &b->next;
    const size_t ahead = p->first + (is_here ? first + p->lead : first + p->lead - p->inputs);
    piece->low = codes_at(own->low, p->first + first, own->low_bits);
    piece->high = codes_at(own->high, p->first + first, own->high_bits);
    piece->low_ahead = piece->high_ahead = 0;
    if (!is_here && b->is_last)
        return;
    piece->low_ahead = (uintptr_t)codes_at(then->low, ahead, own->low_bits) - (uintptr_t)piece->low;
    piece->high_ahead = (uintptr_t)codes_at(then->high, ahead, own->high_bits) - (uintptr_t)piece->high;
}

/* One level's scales are read where they are. */
static void place_scales(const gb_linear *l, const panel *p, block *b, size_t first, gb_piece *piece,
                         gb_block_piece *of_block) {
    const gb_quantized_matrix *matrix = l->quantized;
    const gb_planes *planes = &matrix->planes;
    const size_t group = matrix->format.group == 0 ? 0 : (p->first + first) / piece->group;
    if (matrix->format.kind == GB_FORMAT_TWO_LEVEL) {
        GB_FOR_ISA(gb_expand_scales)
        (matrix, b->row, group, piece->inputs / piece->group, b->scales, b->biases);
        of_block->scales = b->scales;
        of_block->biases = b->biases;
    } else {
        const uint8_t *data = (const uint8_t *)matrix->data + group * ROWS * sizeof(uint16_t);
        of_block->scales = data + planes->scales.offset + b->row * planes->scales.row_bytes;
        of_block->biases = data + planes->biases.offset + b->row * planes->biases.row_bytes;
    }
}

/* A piece ends where what it asks for goes on in another block. */
static size_t piece_inputs(const panel *p, size_t first) {
    const size_t turn = p->inputs - p->lead, end = first < turn ? turn : p->inputs;
    return end - first < p->piece_inputs ? end - first : p->piece_inputs;
}

/* Where there are fewer than GB_BLOCKS, the last one is computed again instead of the missing ones. */
static void add_pieces(const gb_linear *l, const panel *p, blocks *b) {
    const gb_format *format = &l->quantized->format;
    const gb_raised_book book = gb_raise_book(format->book);
    gb_piece piece = {.group = l->activations->group,
                      .has_bias = format->has_bias,
                      .book = &book,
                      .scale_step = format->group == 0 ? 0 : ROWS,
                      .scale_dtype = format->kind == GB_FORMAT_TWO_LEVEL ? GB_F32 : format->scale};
    for (size_t first = 0; first < p->inputs; first += piece.inputs) {
        piece.inputs = piece_inputs(p, first);
        for (size_t i = 0; i < GB_BLOCKS; i++) {
            block *of = &b->block[i < b->count ? i : b->count - 1];
            place_codes(p, of, first, &piece.blocks[i]);
            place_scales(l, p, of, first, &piece, &piece.blocks[i]);
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

/* The results' lines are prefetched before they are needed. */
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

/* The row of the matrix that is read after `row`, which may be past the end. */
static size_t row_after(const gb_linear *l, size_t row, size_t end) {
    return row < end ? l->first_row + row : l->next_row;
}

static void add_panel(const gb_linear *l, const panel *p, size_t first, size_t end) {
    const size_t together = gb_blocks_for(p->tokens);
    blocks b;
    for (size_t row = first; row < end;) {
        for (b.count = 0; b.count < together && row < end; b.count++) {
            block *of = &b.block[b.count];
            const size_t of_matrix = l->first_row + row, left = end - row;
            of->row = of_matrix / ROWS * ROWS;
            of->first = of_matrix % ROWS;
            of->end = left < ROWS - of->first ? of->first + left : ROWS;
            of->result = row;
            row += of->end - of->first;
            const size_t next = row_after(l, row + (together - 1) * ROWS, end);
            of->codes = find_codes(l->quantized, of->row);
            of->is_last = next == GB_NO_ROW;
            if (!of->is_last)
                of->next = find_codes(l->quantized, next / ROWS * ROWS);
        }
        add_blocks(l, p, &b);
    }
}

void GB_FOR_ISA(gb_linear_interleaved)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    panel *p = scratch;
    const bool is_one_level = l->quantized->format.kind == GB_FORMAT_ONE_LEVEL;
    if (l->tokens == 1 && is_one_level) {
        GB_FOR_ISA(gb_linear_token)(l, first, end);
        return;
    }
    if (l->tokens == 1 && l->activations->groups <= GB_MOST_TOKEN_GROUPS) {
        GB_FOR_ISA(gb_linear_token_levels)(l, first, end, scratch);
        return;
    }
    for (p->token = 0; p->token < l->tokens; p->token += p->tokens) {
        const size_t left = l->tokens - p->token;
        p->tokens = left < PANEL_TOKENS ? left : PANEL_TOKENS;
        const size_t most = PANEL_CODES / p->tokens / PANEL_UNIT * PANEL_UNIT;
        for (p->first = 0; p->first < l->inputs; p->first += p->inputs) {
            p->inputs = l->inputs - p->first < most ? l->inputs - p->first : most;
            fill_panel(l, p);
            add_panel(l, p, first, end);
        }
    }
}
