/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/ahead.h"
#include "backends/cpu/kernels/vector/interleaved/unit.h"
#include "tensor/packing.h"

/* One token reads every weight once: all that counts is that the next ones are prefetched in time. So
 * blocks of rows follow each other with nothing in between. */

enum { ROWS = 16 };

/* Blocks of rows one after the other. */
typedef struct run {
    size_t blocks;
    gb_stream low, high, scales, biases; /* codes, their high bits; biases.first NULL: none */
    size_t lead;                         /* groups from those that are used to those that are prefetched */
    float *y;
} run;

/* The token's activations, and what all blocks share. */
typedef struct input {
    size_t inputs, group;
    const int8_t *codes;
    const float *scales, *sums;
    const int32_t *code_sums;
    gb_raised_book book;
    int32_t start; /* a group's integer sum begins with so many times its sum of codes */
    gb_dtype scale_dtype;
    size_t scale_step; /* 16, or 0: all groups have the first one's */
} input;

/* Adds the products of groups first .. end - 1. */
GB_INLINE void add_groups(int kind, const input *in, size_t first, size_t end, gb_code_place *at,
                          gb_affines *affines, gb_lanes *y) {
    const int8_t *x = in->codes + first * in->group;
    for (size_t g = first; g < end; g++) {
        gb_wide sums[1][GB_TOKENS];
        bool is_odd = false;
        const size_t left = in->inputs - g * in->group;
        sums[0][0] = gb_fill_wide(in->start * in->code_sums[g]);
        x = gb_add_inputs(kind, 1, 1, left < in->group ? left : in->group, at, &is_odd, x, sums);
        gb_add_group(1, affines, in->scales + g, in->sums + g, sums[0], y);
    }
}

GB_INLINE void multiply_run(int kind, const input *in, const run *r) {
    const size_t groups = (in->inputs + in->group - 1) / in->group;
    const size_t page_lead = 1 + GB_PAGE_LEAD_BYTES / r->low.block_bytes;
    for (size_t b = 0; b < r->blocks; b++) {
        gb_find_page_after(&r->low, b, r->blocks, page_lead);
        gb_find_page_after(&r->scales, b, r->blocks, page_lead);
        gb_find_page_after(&r->biases, b, r->blocks, page_lead);
        gb_code_place at = {r->low.first + b * r->low.block_bytes, r->high.first + b * r->high.block_bytes, 0,
                            0, &in->book};
        gb_affines affines = {.scales = r->scales.first + b * r->scales.block_bytes,
                              .biases = r->biases.first ? r->biases.first + b * r->biases.block_bytes : NULL,
                              .dtype = in->scale_dtype,
                              .step = in->scale_step};
        gb_lanes y[1] = {gb_zero_lanes()};
        gb_stretch stretch;
        for (size_t g = 0; g < groups; g = stretch.end) {
            stretch = gb_stretch_from(b, g, groups, r->lead);
            at.low_ahead = gb_bytes_ahead(&r->low, b, r->blocks, &stretch);
            at.high_ahead = gb_bytes_ahead(&r->high, b, r->blocks, &stretch);
            affines.scales_ahead = gb_bytes_ahead(&r->scales, b, r->blocks, &stretch);
            affines.biases_ahead = gb_bytes_ahead(&r->biases, b, r->blocks, &stretch);
            add_groups(kind, in, g, stretch.end, &at, &affines, y);
        }
        gb_store_lanes(r->y + b * ROWS, y[0]);
    }
}

#define KIND(kind)                                                                                           \
    GB_NO_INLINE void multiply_##kind(const input *in, const run *r) {                                       \
        multiply_run(kind, in, r);                                                                           \
    }
KIND(2)
KIND(3)
KIND(4)
KIND(5)
KIND(6)
KIND(8)
KIND(20)

/* What export writes by default: 4 bits in groups of 64 with bf16 scales and biases. */
static bool is_default_format(int kind, const input *in, const run *r) {
    return kind == 4 && in->group == 64 && in->inputs % 64 == 0 && in->scale_dtype == GB_BF16 &&
           in->scale_step == ROWS && r->biases.first;
}

GB_NO_INLINE void multiply_default_format(const input *given, const run *r) {
    input in = *given;
    in.group = 64;
    in.inputs = given->inputs / 64 * 64;
    in.scale_dtype = GB_BF16;
    in.scale_step = ROWS;
    if (r->biases.first)
        multiply_run(4, &in, r);
}

/* No book of 3 bits goes with one level. */
static void multiply(int kind, const input *in, const run *r) {
    static void (*const kernels[GB_KINDS])(const input *in, const run *r) = {
        [2] = multiply_2, [3] = multiply_3, [4] = multiply_4,   [5] = multiply_5,
        [6] = multiply_6, [8] = multiply_8, [20] = multiply_20,
    };
    if (is_default_format(kind, in, r))
        multiply_default_format(in, r);
    else
        kernels[kind](in, r);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

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
                   .book = gb_raise_book(format->book),
                   .start = gb_start_factor(format),
                   .scale_dtype = format->scale,
                   .scale_step = format->group == 0 ? 0 : ROWS};
}

/* A plane from a row on, the first of a block; the row `next` is read after it. */
static gb_stream stream_of(const gb_linear *l, const gb_plane *plane, size_t row, size_t next) {
    const uint8_t *data = (const uint8_t *)l->quantized->data + plane->offset;
    return (gb_stream){.first = data + row * plane->row_bytes,
                       .next = next == GB_NO_ROW ? NULL : data + next / ROWS * ROWS * plane->row_bytes,
                       .block_bytes = plane->row_bytes * ROWS};
}

static gb_stream moved(gb_stream stream, size_t bytes) {
    stream.first += bytes;
    stream.next = stream.next ? stream.next + bytes : NULL;
    return stream;
}

/* Blocks from a row of the matrix on; the row `next` is read after them. */
static run run_at(const gb_linear *l, const input *in, size_t row, size_t blocks, size_t next, float *y) {
    const gb_planes *planes = &l->quantized->planes;
    const size_t bits = l->quantized->format.bits, low_bits = gb_low_bits(l->quantized->format.bits);
    const size_t scale_bytes = in->scale_step * sizeof(uint16_t);
    run r = {.blocks = blocks, .low = stream_of(l, &planes->codes, row, next), .y = y};
    r.high = moved(r.low, r.low.block_bytes / bits * low_bits);
    r.low.group_bytes = in->group * low_bits * (ROWS / 8);
    r.high.group_bytes = in->group * (bits - low_bits) * (ROWS / 8);
    r.scales = stream_of(l, &planes->scales, row, next);
    r.scales.group_bytes = scale_bytes;
    if (l->quantized->format.has_bias) {
        r.biases = stream_of(l, &planes->biases, row, next);
        r.biases.group_bytes = scale_bytes;
    }
    r.lead = gb_lead_of(r.low.group_bytes + r.high.group_bytes);
    return r;
}

/* Some rows of one block. */
static void multiply_part(const gb_linear *l, const input *in, size_t first, size_t end) {
    _Alignas(64) float y[ROWS];
    const size_t in_block = (l->first_row + first) % ROWS;
    const run r = run_at(l, in, l->first_row + first - in_block, 1, l->next_row, y);
    multiply(gb_kind_of(&l->quantized->format), in, &r);
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
    if (blocks > 0) {
        float *y = gb_linear_result(l, 0) + first;
        const run r = run_at(l, &in, l->first_row + first, blocks, l->next_row, y);
        multiply(gb_kind_of(&l->quantized->format), &in, &r);
    }
    first += blocks * ROWS;
    if (first < end)
        multiply_part(l, &in, first, end);
}
