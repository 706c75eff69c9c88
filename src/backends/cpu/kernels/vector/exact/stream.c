/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/exact/groups.h"

/* bits and tokens are constants where the functions of this file are inlined: a kernel for each pair, whose
 * sums stay in registers. Few tokens have two sums each, so that products wait less for the ones before. */

enum { CHAINS = 2 };

GB_INLINE int chains_of(int tokens) {
    return tokens * GB_PARTS < 4 ? CHAINS : 1;
}

typedef gb_wide all_sums[CHAINS][GB_STREAM_TOKENS];

/* ---- Products of a span, or of some inputs of 8 bits --------------------------------------------------- */

/* A span's sum of codes is scaled, and what the zeros add is taken off. */
GB_INLINE void add_span(int bits, int tokens, gb_code_place *at, const gb_group_scales *group,
                        const int8_t *x, const int32_t *code_sums, gb_wide *sums) {
    gb_span_codes span;
    gb_narrow narrow[GB_STREAM_TOKENS];
    gb_wide parts[CHAINS][GB_STREAM_TOKENS];
#pragma GCC unroll 16
    for (int t = 0; t < tokens; t++) {
        narrow[t] = gb_zero_narrow();
        parts[0][t] = parts[1][t] = gb_fill_wide(0);
    }
#pragma GCC unroll 8
    for (int s = 0; s < GB_SPAN_STEPS; s++) {
        const gb_codes codes = gb_next_codes(bits, s, at, &span);
        const int8_t *four = x + s / GB_UNIT_STEPS * tokens * GB_UNIT + 4 * (s % GB_UNIT_STEPS);
#pragma GCC unroll 16
        for (int t = 0; t < tokens; t++) {
            gb_dot(&parts[s % chains_of(tokens)][t], &narrow[t], codes, four + t * GB_UNIT);
            if (!GB_HAS_WIDE_DOTS && (s + 1) % gb_narrow_steps(bits) == 0)
                gb_fold_scaled(&sums[t], NULL, &narrow[t], group->scale);
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < tokens; t++) {
        const gb_wide part = chains_of(tokens) > 1 ? gb_add_wide(parts[0][t], parts[1][t]) : parts[0][t];
        if (GB_HAS_WIDE_DOTS)
            gb_fold_scaled(&sums[t], &part, &narrow[t], group->scale);
        sums[t] = gb_take_product(sums[t], group->zero, code_sums[t]);
    }
}

/* The same with codes that are scaled to bytes. */
GB_INLINE void add_span_bytes(int bits, int tokens, gb_code_place *at, const gb_byte_scales *group,
                              const int8_t *x, gb_wide *sums) {
    gb_span_codes span;
#pragma GCC unroll 8
    for (int s = 0; s < GB_SPAN_STEPS; s++) {
        const gb_codes bytes = gb_scale_codes(gb_next_codes(bits, s, at, &span), group);
        const int8_t *four = x + s / GB_UNIT_STEPS * tokens * GB_UNIT + 4 * (s % GB_UNIT_STEPS);
#pragma GCC unroll 16
        for (int t = 0; t < tokens; t++)
            gb_dot_bytes(&sums[t], bytes, four + t * GB_UNIT);
    }
}

/* Whole groups of a progressive format. */
GB_INLINE void add_groups(int bits, int tokens, const gb_exact_tokens *x, size_t group, size_t first,
                          size_t end, gb_code_place *at, const uint8_t *groups, size_t groups_ahead,
                          all_sums sums) {
    const size_t spans = group / GB_SPAN;
    const int8_t *codes = x->codes + first * group * (size_t)tokens;
    const int32_t *code_sums = x->sums + first * spans * (size_t)tokens;
    for (size_t g = first; g < end; g++) {
        const gb_group_scales scales = gb_load_group(bits, groups + g * GB_ROWS);
        gb_fetch(groups + g * GB_ROWS, groups_ahead);
        const gb_byte_scales by = gb_byte_scales_of(&scales);
        for (size_t s = 0; s < spans; s++) {
            if (gb_streams_bytes(bits, (size_t)tokens))
                add_span_bytes(bits, tokens, at, &by, codes, sums[0]);
            else
                add_span(bits, tokens, at, &scales, codes, code_sums, sums[0]);
            codes += tokens * GB_SPAN;
            code_sums += tokens;
        }
    }
}

/* 4 inputs of 8 bits. */
GB_INLINE void add_byte_step(int tokens, gb_code_place *at, const int8_t *four, gb_wide *sums) {
    gb_fetch(at->low, at->low_ahead);
    const gb_codes codes = gb_load_codes(at->low);
    at->low += GB_CHUNK;
#pragma GCC unroll 16
    for (int t = 0; t < tokens; t++)
        gb_dot_bytes(&sums[t], codes, four + t * GB_UNIT);
}

GB_INLINE void add_bytes(int tokens, const gb_exact_tokens *x, size_t first, size_t end, gb_code_place *at,
                         all_sums sums) {
    const int8_t *codes = x->codes + first * GB_UNIT * (size_t)tokens;
    for (size_t u = first; u < end; u++, codes += tokens * GB_UNIT) {
        const size_t left = (x->inputs - u * GB_UNIT) / 4;
        gb_wide *to = sums[u % (size_t)chains_of(tokens)];
        if (left >= GB_UNIT_STEPS)
#pragma GCC unroll 4
            for (int s = 0; s < GB_UNIT_STEPS; s++)
                add_byte_step(tokens, at, codes + 4 * s, to);
        else
            for (size_t s = 0; s < left; s++)
                add_byte_step(tokens, at, codes + 4 * s, sums[0]);
    }
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

GB_INLINE void begin_sums(int tokens, const gb_exact_tokens *x, all_sums sums) {
#pragma GCC unroll 16
    for (int t = 0; t < tokens; t++) {
        sums[0][t] = gb_fill_wide(x->starts[t]);
        sums[1][t] = gb_fill_wide(0);
    }
}

/* Rows of the block that are wanted. */
GB_INLINE void store_rows(const gb_exact_blocks *r, size_t row, gb_lanes y, float *result, size_t first_row) {
    const size_t first = row < r->first ? r->first : row;
    const size_t end = r->end < row + GB_ROWS ? r->end : row + GB_ROWS;
    if (end - first == GB_ROWS) {
        gb_store_lanes(result + (row - first_row), y);
        return;
    }
    _Alignas(64) float rows[GB_ROWS];
    gb_store_lanes(rows, y);
    memcpy(result + (first - first_row), rows + (first - row), (end - first) * sizeof *rows);
}

GB_INLINE void end_block(int tokens, const gb_exact_tokens *x, const gb_exact_blocks *r, size_t block,
                         all_sums sums) {
    const size_t row = r->row + block * GB_ROWS;
    const gb_lanes scales =
        gb_load_row_scales((const uint16_t *)r->row_scales + block * GB_ROWS, r->scale_dtype);
#pragma GCC unroll 16
    for (int t = 0; t < tokens; t++) {
        if (chains_of(tokens) > 1)
            sums[0][t] = gb_add_wide(sums[0][t], sums[1][t]);
        store_rows(r, row, gb_finish_sum(sums[0][t], x->scales[t], scales), x->results[t], x->first_row);
    }
}

GB_INLINE void multiply_block(int bits, int tokens, const gb_exact_tokens *x, const gb_exact_blocks *r,
                              size_t block) {
    const size_t groups = (x->inputs + r->group - 1) / r->group;
    const uint8_t *group_bytes = r->groups.first + block * r->groups.block_bytes;
    gb_code_place at = {r->low.first + block * r->low.block_bytes,
                        r->high.first + block * r->high.block_bytes, 0, 0, NULL};
    all_sums sums;
    gb_stretch stretch;
    begin_sums(tokens, x, sums);
    gb_fetch((const uint16_t *)r->row_scales + block * GB_ROWS, 0);
    for (size_t g = 0; g < groups; g = stretch.end) {
        stretch = gb_stretch_from(block, g, groups, r->lead);
        at.low_ahead = gb_bytes_ahead(&r->low, block, r->count, &stretch);
        at.high_ahead = gb_bytes_ahead(&r->high, block, r->count, &stretch);
        const size_t groups_ahead = gb_bytes_ahead(&r->groups, block, r->count, &stretch);
        if (bits == 8)
            add_bytes(tokens, x, g, stretch.end, &at, sums);
        else
            add_groups(bits, tokens, x, r->group, g, stretch.end, &at, group_bytes, groups_ahead, sums);
    }
    end_block(tokens, x, r, block, sums);
}

GB_INLINE void multiply_blocks(int bits, int tokens, const gb_exact_tokens *x, const gb_exact_blocks *r) {
    const size_t page_lead = 1 + GB_PAGE_LEAD_BYTES / r->low.block_bytes;
    for (size_t b = 0; b < r->count; b++) {
        gb_find_page_after(&r->low, b, r->count, page_lead);
        if (bits < 8)
            gb_find_page_after(&r->groups, b, r->count, page_lead);
        multiply_block(bits, tokens, x, r, b);
    }
}

#define KERNEL(bits, tokens)                                                                                 \
    static void stream_##bits##_##tokens(const gb_exact_tokens *x, const gb_exact_blocks *r) {               \
        multiply_blocks(bits, tokens, x, r);                                                                 \
    }
#define KERNELS_OF(tokens) KERNEL(4, tokens) KERNEL(5, tokens) KERNEL(6, tokens) KERNEL(8, tokens)
#define NAMES_OF(tokens) {stream_4_##tokens, stream_5_##tokens, stream_6_##tokens, stream_8_##tokens},

#if defined(__AVX512VNNI__)
#define EACH_LARGER(X) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
#else
#define EACH_LARGER(X)
#endif

GB_EACH_TILE(KERNELS_OF)
EACH_LARGER(KERNELS_OF)

static void (*const kernels[GB_STREAM_TOKENS][4])(const gb_exact_tokens *x, const gb_exact_blocks *r) = {
    GB_EACH_TILE(NAMES_OF) EACH_LARGER(NAMES_OF)};

void GB_FOR_ISA(gb_stream_blocks)(int bits, const gb_exact_tokens *x, const gb_exact_blocks *r) {
    kernels[x->count - 1][bits == 8 ? 3 : bits - 4](x, r);
}
