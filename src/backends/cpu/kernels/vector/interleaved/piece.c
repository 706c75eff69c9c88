/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/unit.h"

/* kind, tokens and blocks are constants where the functions of this file are inlined: a kernel for each pair,
 * whose sums stay in registers. */

GB_INLINE void load_results(int tokens, float (*from)[16], gb_lanes *y) {
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        y[t] = gb_load_lanes(from[t], GB_F32, 0);
}

GB_INLINE void store_results(int tokens, const gb_lanes *y, float (*to)[16]) {
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        gb_store_lanes(to[t], y[t]);
}

GB_INLINE void add_piece(int kind, int tokens, int blocks, const gb_piece *piece) {
    const bool in_registers = blocks * tokens * GB_PARTS <= 8;
    const float *x_scales = piece->scales, *x_sums = piece->sums;
    const int32_t *starts = piece->starts;
    const size_t group = piece->group;
    gb_affines affine[GB_BLOCKS];
    float(*results[GB_BLOCKS])[16];
    gb_lanes y[GB_BLOCKS][GB_TOKENS];
    gb_code_place at[GB_BLOCKS];
    const int8_t *x = piece->codes;
    bool is_odd = false;
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++) {
        at[b] = (gb_code_place){piece->blocks[b].low, piece->blocks[b].high, piece->blocks[b].low_ahead,
                                piece->blocks[b].high_ahead, piece->book};
        affine[b] = (gb_affines){piece->blocks[b].scales, piece->has_bias ? piece->blocks[b].biases : NULL,
                                 piece->scale_dtype,      0,
                                 piece->scale_step,       GB_FETCH_SCALES,
                                 GB_FETCH_SCALES};
        results[b] = piece->blocks[b].y;
        if (in_registers)
            load_results(tokens, results[b], y[b]);
    }
    for (size_t left = piece->inputs, count; left > 0; left -= count) {
        gb_wide sums[GB_BLOCKS][GB_TOKENS];
        count = left < group ? left : group;
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
#pragma GCC unroll 2
            for (int b = 0; b < blocks; b++)
                sums[b][t] = gb_fill_wide(starts[t]);
        x = gb_add_inputs(kind, tokens, blocks, count, at, &is_odd, x, sums);
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++) {
            if (!in_registers)
                load_results(tokens, results[b], y[b]);
            gb_add_group(tokens, &affine[b], x_scales, x_sums, sums[b], y[b]);
            if (!in_registers)
                store_results(tokens, y[b], results[b]);
        }
        x_scales += tokens;
        x_sums += tokens;
        starts += tokens;
    }
#pragma GCC unroll 2
    for (int b = 0; b < blocks && in_registers; b++)
        store_results(tokens, y[b], results[b]);
}

#define KERNEL(kind, tokens)                                                                                 \
    static void add_piece_##kind##_##tokens(const gb_piece *piece) {                                         \
        add_piece(kind, tokens, (tokens) == 1 ? 1 : GB_BLOCKS, piece);                                       \
    }
#define KERNELS_OF(tokens)                                                                                   \
    KERNEL(2, tokens)                                                                                        \
    KERNEL(3, tokens)                                                                                        \
    KERNEL(4, tokens)                                                                                        \
    KERNEL(5, tokens)                                                                                        \
    KERNEL(6, tokens)                                                                                        \
    KERNEL(8, tokens)                                                                                        \
    KERNEL(19, tokens)                                                                                       \
    KERNEL(20, tokens)
#define NAMES_OF(tokens)                                                                                     \
    {[2] = add_piece_2_##tokens,   [3] = add_piece_3_##tokens,  [4] = add_piece_4_##tokens,                  \
     [5] = add_piece_5_##tokens,   [6] = add_piece_6_##tokens,  [8] = add_piece_8_##tokens,                  \
     [19] = add_piece_19_##tokens, [20] = add_piece_20_##tokens},

GB_EACH_TILE(KERNELS_OF)

static void (*const kernels[GB_TOKENS][GB_KINDS])(const gb_piece *piece) = {GB_EACH_TILE(NAMES_OF)};

void GB_FOR_ISA(gb_add_piece)(int kind, const gb_piece *piece) {
    kernels[piece->tokens - 1][kind](piece);
}
