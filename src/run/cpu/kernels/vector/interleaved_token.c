/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved_unit.h"

/* One token reads every weight once: all that counts is that memory is asked for the next ones in time. So
 * blocks of rows follow each other with nothing in between, and each asks for what lies some kilobytes
 * further on: in the blocks after it or, at the end, in those that the thread reads next. */

enum {
    ROWS = 16,
    LEAD_BYTES = 8192, /* what memory delivers while it answers */
    SCALES_LEAD_BYTES = 1024,
    MOST_LEAD_BYTES = 24576 /* half of the nearest cache */
};

/* Where the planes of some blocks begin. */
typedef struct planes {
    const uint8_t *codes, *scales, *biases; /* biases NULL: none */
} planes;

/* Blocks of rows one after the other. */
typedef struct run {
    size_t blocks;
    planes at;                      /* of the first one */
    size_t code_bytes, scale_bytes; /* from one block to the next */
    size_t low_bytes;               /* of a block's codes, what comes before the bits over 4 */
    size_t codes_ahead, scales_ahead, biases_ahead; /* from what is used to what is asked for */
    float *y;
} run;

/* The token's activations, and what all blocks share. */
typedef struct input {
    size_t inputs, group;
    const int8_t *codes;
    const float *scales, *sums;
    const int32_t *code_sums;
    int32_t start; /* a group's integer sum begins with so many times its sum of codes */
    gb_dtype scale_dtype;
    size_t scale_step; /* 16, or 0: all groups have the first one's */
} input;

GB_INLINE gb_lanes multiply_block(int bits, size_t group, const input *in, gb_place *at,
                                  gb_affines *affines) {
    const int8_t *x = in->codes;
    gb_lanes y[1] = {gb_zero_lanes()};
    size_t left = in->inputs;
    for (size_t g = 0; left > 0; g++) {
        gb_wide sums[1][GB_TOKENS];
        bool is_odd = false;
        sums[0][0] = gb_fill_wide(in->start * in->code_sums[g]);
        const size_t count = left < group ? left : group;
        x = gb_add_inputs(bits, 1, 1, count, at, &is_odd, x, sums);
        gb_add_group(1, affines, in->scales + g, in->sums + g, sums[0], y);
        left -= count;
    }
    return y[0];
}

GB_INLINE void multiply_run(int bits, size_t group, const input *in, const run *r) {
    planes from = r->at;
    float *y = r->y;
    for (size_t b = 0; b < r->blocks; b++, y += ROWS) {
        gb_place at = {from.codes, from.codes + r->low_bytes, r->codes_ahead, r->codes_ahead};
        gb_affines affines = {from.scales,    from.biases,     in->scale_dtype, 0,
                              in->scale_step, r->scales_ahead, r->biases_ahead};
        gb_store_lanes(y, multiply_block(bits, group, in, &at, &affines));
        from.codes += r->code_bytes;
        from.scales += r->scale_bytes;
        from.biases = from.biases ? from.biases + r->scale_bytes : NULL;
    }
}

static void multiply_4(const input *in, const run *r) {
    multiply_run(4, in->group, in, r);
}
static void multiply_5(const input *in, const run *r) {
    multiply_run(5, in->group, in, r);
}
static void multiply_6(const input *in, const run *r) {
    multiply_run(6, in->group, in, r);
}
static void multiply_8(const input *in, const run *r) {
    multiply_run(8, in->group, in, r);
}

static void multiply(int bits, const input *in, const run *r) {
    if (bits == 4)
        multiply_4(in, r);
    else if (bits == 5)
        multiply_5(in, r);
    else if (bits == 6)
        multiply_6(in, r);
    else
        multiply_8(in, r);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static planes planes_of(const gb_quantized_matrix *matrix, size_t row) {
    const gb_planes *planes_at = &matrix->planes;
    const uint8_t *data = matrix->data;
    planes at = {.codes = data + planes_at->codes.offset + row * planes_at->codes.row_bytes,
                 .scales = data + planes_at->scales.offset + row * planes_at->scales.row_bytes};
    if (matrix->format.has_bias)
        at.biases = data + planes_at->biases.offset + row * planes_at->biases.row_bytes;
    return at;
}

static input input_of(const gb_linear *l) {
    const gb_activations *x = l->activations;
    const gb_format *format = &l->quantized->format;
    const size_t row = gb_linear_input_row(l, 0);
    return (input){.inputs = l->inputs,
                   .group = x->group,
                   .codes = x->codes + row * x->stride,
                   .scales = x->scales + row * x->groups,
                   .sums = x->sums + row * x->groups,
                   .code_sums = x->code_sums + row * x->groups,
                   .start = (format->bits == 8 ? GB_BYTE_OFFSET : 0) - gb_format_center(format),
                   .scale_dtype = format->scale,
                   .scale_step = format->group == 0 ? 0 : ROWS};
}

static run run_at(const gb_linear *l, size_t row) {
    const gb_plane *codes = &l->quantized->planes.codes;
    run r = {.at = planes_of(l->quantized, row),
             .code_bytes = codes->row_bytes * ROWS,
             .scale_bytes = l->quantized->planes.scales.row_bytes * ROWS};
    r.low_bytes =
        l->quantized->format.bits == 8 ? r.code_bytes : r.code_bytes / l->quantized->format.bits * 4;
    return r;
}

/* From one address to another, also of other memory. */
static size_t distance(const uint8_t *from, const uint8_t *to) {
    return (uintptr_t)to - (uintptr_t)from;
}

/* Blocks that end with what the thread reads before it goes to next_row. */
static void multiply_last(const gb_linear *l, const input *in, run *r) {
    if (l->next_row == GB_NO_ROW) {
        r->codes_ahead = r->scales_ahead = r->biases_ahead = 0;
    } else {
        const planes next = planes_of(l->quantized, l->next_row / ROWS * ROWS);
        r->codes_ahead = distance(r->at.codes, next.codes);
        r->scales_ahead = distance(r->at.scales, next.scales);
        r->biases_ahead = distance(r->at.biases, next.biases);
    }
    multiply(l->quantized->format.bits, in, r);
}

/* Whole blocks. Where they are not too long, what is asked for is a number of blocks further on, so that the
 * last ones can ask for the next rows. */
static void multiply_blocks(const gb_linear *l, const input *in, size_t first, size_t blocks) {
    float *y = gb_linear_result(l, 0) + first;
    run r = run_at(l, l->first_row + first);
    size_t lead = (LEAD_BYTES + r.code_bytes - 1) / r.code_bytes;
    r.codes_ahead = lead * r.code_bytes;
    r.scales_ahead = r.biases_ahead = lead * r.scale_bytes;
    if (r.codes_ahead > MOST_LEAD_BYTES) {
        r.codes_ahead = LEAD_BYTES;
        r.scales_ahead = r.biases_ahead = SCALES_LEAD_BYTES;
        lead = 0;
    }
    lead = lead < blocks ? lead : blocks;
    r.blocks = blocks - lead;
    r.y = y;
    multiply(l->quantized->format.bits, in, &r);
    if (lead == 0)
        return;
    r.at = planes_of(l->quantized, l->first_row + first + r.blocks * ROWS);
    r.y = y + r.blocks * ROWS;
    r.blocks = lead;
    multiply_last(l, in, &r);
}

/* Some rows of one block. */
static void multiply_part(const gb_linear *l, const input *in, size_t first, size_t end) {
    _Alignas(64) float y[ROWS];
    const size_t in_block = (l->first_row + first) % ROWS;
    run r = run_at(l, l->first_row + first - in_block);
    r.blocks = 1;
    r.y = y;
    multiply(l->quantized->format.bits, in, &r);
    memcpy(gb_linear_result(l, 0) + first, y + in_block, (end - first) * sizeof *y);
}

void GB_FOR_ISA(gb_linear_token)(const gb_linear *l, size_t first, size_t end) {
    const input in = input_of(l);
    const size_t in_block = (l->first_row + first) % ROWS;
    if (in_block > 0) {
        const size_t stop = end - first < ROWS - in_block ? end : first + ROWS - in_block;
        multiply_part(l, &in, first, stop);
        first = stop;
    }
    const size_t blocks = (end - first) / ROWS;
    if (blocks > 0)
        multiply_blocks(l, &in, first, blocks);
    first += blocks * ROWS;
    if (first < end)
        multiply_part(l, &in, first, end);
}
