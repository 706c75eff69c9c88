/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/exact/exact.h"

enum { PANEL_CODES = 512 * 1024 /* tokens times inputs: they stay in the second cache */ };

/* ---- Activations --------------------------------------------------------------------------------------- */

/* [units, tokens, 16] */
static void pack_codes(const gb_linear *l, size_t token, size_t tokens, int8_t *to) {
    const size_t units = l->inputs / GB_UNIT, left = l->inputs % GB_UNIT;
    for (size_t t = 0; t < tokens; t++) {
        const size_t row = gb_linear_input_row(l, token + t);
        const int8_t *from = l->activations->codes + row * l->activations->stride;
        for (size_t u = 0; u < units; u++)
            memcpy(to + (u * tokens + t) * GB_UNIT, from + u * GB_UNIT, GB_UNIT);
        if (left > 0)
            memcpy(to + (units * tokens + t) * GB_UNIT, from + units * GB_UNIT, left);
    }
}

/* [spans, tokens] */
static void pack_sums(const gb_linear *l, size_t token, size_t tokens, int32_t *to) {
    const gb_activations *x = l->activations;
    for (size_t t = 0; t < tokens; t++) {
        const int32_t *from = x->code_sums + gb_linear_input_row(l, token + t) * x->groups;
        for (size_t g = 0; g < x->groups; g++)
            to[g * tokens + t] = from[g];
    }
}

static size_t tile_of(size_t tokens) {
    return tokens < GB_STREAM_TOKENS ? tokens : GB_STREAM_TOKENS;
}

static size_t padded(size_t inputs) {
    return (inputs + GB_UNIT - 1) / GB_UNIT * GB_UNIT;
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

typedef struct streams {
    int8_t codes[PANEL_CODES]; /* of tiles, one after the other */
    int32_t sums[PANEL_CODES / GB_SPAN];
} streams;

_Static_assert(sizeof(streams) <= GB_LINEAR_SCRATCH, "the scratch holds the activations of streams");

/* A plane from a row on, the first of a block; the row `next` is read after it. */
static gb_stream stream_of(const gb_linear *l, const gb_plane *plane, size_t row, size_t next) {
    const uint8_t *data = (const uint8_t *)l->quantized->data + plane->offset;
    return (gb_stream){.first = data + row * plane->row_bytes,
                       .next = next == GB_NO_ROW ? NULL : data + next / GB_ROWS * GB_ROWS * plane->row_bytes,
                       .block_bytes = plane->row_bytes * GB_ROWS};
}

/* The blocks of rows first .. end - 1 of the matrix. */
static gb_exact_blocks blocks_of(const gb_linear *l, size_t first, size_t end, size_t next) {
    const gb_quantized_matrix *matrix = l->quantized;
    const size_t bits = matrix->format.bits, low_bits = bits == 8 ? 8 : 4;
    const size_t row = first / GB_ROWS * GB_ROWS;
    gb_exact_blocks b = {.count = (end - row + GB_ROWS - 1) / GB_ROWS,
                         .low = stream_of(l, &matrix->planes.codes, row, next),
                         .group = bits == 8 ? GB_UNIT : matrix->format.group,
                         .row_scales = gb_row_scales(matrix, row),
                         .scale_dtype = matrix->format.scale,
                         .row = row,
                         .first = first,
                         .end = end};
    const size_t high_at = b.low.block_bytes / bits * low_bits;
    b.high = b.low;
    b.high.first += high_at;
    b.high.next = b.high.next ? b.high.next + high_at : NULL;
    b.low.group_bytes = b.group * low_bits * (GB_ROWS / 8);
    b.high.group_bytes = b.group * (bits - low_bits) * (GB_ROWS / 8);
    b.groups = stream_of(l, &matrix->planes.scales, row, next);
    b.groups.group_bytes = GB_ROWS;
    b.lead = gb_lead_of(b.low.group_bytes + b.high.group_bytes);
    return b;
}

static gb_exact_tokens tokens_of(const gb_linear *l, size_t token, size_t count) {
    const int bits = l->quantized->format.bits;
    gb_exact_tokens x = {.count = count, .inputs = l->inputs, .first_row = l->first_row};
    for (size_t t = 0; t < count; t++) {
        x.starts[t] = gb_streams_bytes(bits, count) ? gb_exact_start(l, token + t) : 0;
        x.scales[t] = l->activations->scales[gb_linear_input_row(l, token + t)];
        x.results[t] = gb_linear_result(l, token + t);
    }
    return x;
}

/* One token's activations are used where they are. */
static void stream_token(const gb_linear *l, const gb_exact_blocks *blocks) {
    const gb_activations *a = l->activations;
    const size_t row = gb_linear_input_row(l, 0);
    gb_exact_tokens x = tokens_of(l, 0, 1);
    x.codes = a->codes + row * a->stride;
    x.sums = a->code_sums + row * a->groups;
    GB_FOR_ISA(gb_stream_blocks)(l->quantized->format.bits, &x, blocks);
}

/* Blocks first to last, each with all tiles of a panel. */
static void stream_panel(const gb_linear *l, size_t token, size_t tokens, const gb_exact_blocks *all,
                         const streams *space) {
    const size_t inputs = padded(l->inputs), groups = l->activations->groups;
    for (size_t t = 0, count; t < tokens; t += count) {
        count = tile_of(tokens - t);
        gb_exact_tokens x = tokens_of(l, token + t, count);
        x.codes = space->codes + t * inputs;
        x.sums = space->sums + t * groups;
        GB_FOR_ISA(gb_stream_blocks)(l->quantized->format.bits, &x, all);
    }
}

static void stream_tokens(const gb_linear *l, size_t first, size_t end, streams *space) {
    const size_t inputs = padded(l->inputs), most = PANEL_CODES / inputs;
    for (size_t token = 0, tokens; token < l->tokens; token += tokens) {
        tokens = l->tokens - token < most ? l->tokens - token : most;
        for (size_t t = 0; t < tokens; t += tile_of(tokens - t)) {
            const size_t count = tile_of(tokens - t);
            pack_codes(l, token + t, count, space->codes + t * inputs);
            pack_sums(l, token + t, count, space->sums + t * l->activations->groups);
        }
        const bool is_one_tile = tokens <= GB_STREAM_TOKENS;
        for (size_t row = l->first_row + first, stop; row < l->first_row + end; row = stop) {
            const size_t last = l->first_row + end, block_end = row / GB_ROWS * GB_ROWS + GB_ROWS;
            stop = is_one_tile || last < block_end ? last : block_end;
            const gb_exact_blocks blocks = blocks_of(l, row, stop, stop < last ? stop : l->next_row);
            stream_panel(l, token, tokens, &blocks, space);
        }
    }
}

void GB_FOR_ISA(gb_linear_exact_few)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    if (l->tokens > 1) {
        stream_tokens(l, first, end, scratch);
        return;
    }
    const gb_exact_blocks blocks = blocks_of(l, l->first_row + first, l->first_row + end, l->next_row);
    stream_token(l, &blocks);
}
