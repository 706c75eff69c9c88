/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/exact/groups.h"

/* ---- Expanding weights --------------------------------------------------------------------------------- */

#if GB_HAS_WIDE_DOTS
GB_INLINE void expand_groups(int bits, size_t groups, size_t spans, gb_code_place at, const uint8_t *bytes,
                             uint8_t *to) {
    for (size_t g = 0; g < groups; g++) {
        const gb_group_scales group = gb_load_group(bits, bytes + g * GB_ROWS);
        const gb_byte_scales by = gb_byte_scales_of(&group);
        for (size_t i = 0; i < spans; i++) {
            gb_span_codes span;
#pragma GCC unroll 8
            for (int s = 0; s < GB_SPAN_STEPS; s++, to += GB_CHUNK) {
                const gb_codes codes = gb_scale_codes(gb_next_codes(bits, s, &at, &span), &by);
                memcpy(to, &codes, sizeof codes);
            }
        }
    }
}

void GB_FOR_ISA(gb_expand_block)(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t inputs,
                                 uint8_t *to) {
    const size_t bits = matrix->format.bits, group = matrix->format.group;
    const gb_plane *codes = &matrix->planes.codes, *scales = &matrix->planes.scales;
    const uint8_t *data = matrix->data, *low = data + codes->offset + row * codes->row_bytes;
    const uint8_t *high = low + codes->row_bytes * GB_ROWS / bits * 4;
    const uint8_t *bytes = data + scales->offset + row * scales->row_bytes + first / group * GB_ROWS;
    const size_t input_bytes = GB_ROWS / 8; /* of a bit of the codes */
    const gb_code_place at = {low + first * 4 * input_bytes, high + first * (bits - 4) * input_bytes,
                              GB_LEAD_BYTES, GB_LEAD_BYTES, NULL};
    if (bits == 4)
        expand_groups(4, inputs / group, group / GB_SPAN, at, bytes, to);
    else if (bits == 5)
        expand_groups(5, inputs / group, group / GB_SPAN, at, bytes, to);
    else
        expand_groups(6, inputs / group, group / GB_SPAN, at, bytes, to);
}
#endif

/* ---- Products of bytes --------------------------------------------------------------------------------- */

/* One step of 4 inputs. One address for all blocks leaves registers to those of the activations. */
GB_INLINE void add_step(int blocks, int tokens, const uint8_t *from, size_t block_bytes,
                        const int8_t *const *x, size_t at, gb_wide sums[][GB_TOKENS]) {
    gb_codes codes[GB_BLOCKS];
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++)
        codes[b] = gb_load_codes(from + (size_t)b * block_bytes);
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++)
            gb_dot_bytes(&sums[b][t], codes[b], x[t] + at);
}

/* blocks and tokens are constants where this is inlined, so that sums stay in registers. */
GB_INLINE void add_tile(int blocks, int tokens, const gb_byte_tile *tile, gb_tile_sums to) {
    gb_wide sums[GB_BLOCKS][GB_TOKENS];
    const size_t whole = tile->inputs / GB_UNIT * GB_UNIT, block_bytes = tile->block_bytes;
    const uint8_t *from = tile->blocks;
    size_t at = 0, next = 0;
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++)
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            memcpy(&sums[b][t], to[b][t], sizeof sums[b][t]);
    for (; at < whole; at += GB_UNIT)
#pragma GCC unroll 4
        for (size_t s = 0; s < GB_UNIT; s += 4, from += GB_CHUNK, next += tile->next_step) {
            gb_fetch(tile->next, next);
            add_step(blocks, tokens, from, block_bytes, tile->codes, at + s, sums);
        }
    for (; at < tile->inputs; at += 4, from += GB_CHUNK)
        add_step(blocks, tokens, from, block_bytes, tile->codes, at, sums);
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++)
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            memcpy(to[b][t], &sums[b][t], sizeof sums[b][t]);
}

#define KERNEL(blocks, tokens)                                                                               \
    static void add_tile_##blocks##_##tokens(const gb_byte_tile *tile, gb_tile_sums sums) {                  \
        add_tile(blocks, tokens, tile, sums);                                                                \
    }
#define KERNELS_OF_4(blocks) KERNEL(blocks, 1) KERNEL(blocks, 2) KERNEL(blocks, 3) KERNEL(blocks, 4)
#define NAMES_OF_4(blocks)                                                                                   \
    add_tile_##blocks##_1, add_tile_##blocks##_2, add_tile_##blocks##_3, add_tile_##blocks##_4
#if GB_VECTOR_LANES == 16
#define KERNELS_OF(blocks)                                                                                   \
    KERNELS_OF_4(blocks) KERNEL(blocks, 5) KERNEL(blocks, 6) KERNEL(blocks, 7) KERNEL(blocks, 8)
#define NAMES_OF(blocks)                                                                                     \
    {                                                                                                        \
        NAMES_OF_4(blocks), add_tile_##blocks##_5, add_tile_##blocks##_6, add_tile_##blocks##_7,             \
            add_tile_##blocks##_8                                                                            \
    }
#else
#define KERNELS_OF(blocks) KERNELS_OF_4(blocks)
#define NAMES_OF(blocks)                                                                                     \
    { NAMES_OF_4(blocks) }
#endif

KERNELS_OF(1)
#if defined(__AVX512VNNI__)
KERNELS_OF(2)
#endif

static void (*const kernels[GB_BLOCKS][GB_TOKENS])(const gb_byte_tile *tile, gb_tile_sums sums) = {
    NAMES_OF(1),
#if defined(__AVX512VNNI__)
    NAMES_OF(2),
#endif
};

void GB_FOR_ISA(gb_add_byte_tile)(const gb_byte_tile *tile, gb_tile_sums sums) {
    kernels[tile->block_count - 1][tile->tokens - 1](tile, sums);
}
