/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

/* bits, tokens and blocks are constants where the functions of this file are inlined: a kernel for each pair,
 * whose sums stay in registers. */

GB_INLINE gb_codes low_nibbles(gb_codes codes) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] &= 0x0f0f0f0fu;
    return codes;
}

GB_INLINE gb_codes high_nibbles(gb_codes codes) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] = codes.part[p] >> 4 & 0x0f0f0f0fu;
    return codes;
}

/* Puts the bits of step s above the four of codes: 5-bit codes have one there, in bit s of each byte of high,
 * 6-bit codes two, in bits 2 s and 2 s + 1. */
GB_INLINE gb_codes with_high_bits(gb_codes codes, gb_codes high, int bits, int s) {
    const int left = bits == 5 ? 4 - s : 4 - 2 * s;
    const uint32_t mask = bits == 5 ? 0x10101010u : 0x30303030u;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] |= (left >= 0 ? high.part[p] << (left & 31) : high.part[p] >> (-left & 31)) & mask;
    return codes;
}

/* Where a kernel is in the codes of a block. */
typedef struct place {
    const uint8_t *low, *high;
    size_t low_ahead, high_ahead;
} place;

/* 5 bits: the odd unit is the second one of its bytes of high bits. */
GB_INLINE gb_codes high_of_unit(int bits, const place *at, bool is_odd) {
    gb_codes high = gb_load_codes(at->high);
    if (bits == 5 && is_odd)
        high = high_nibbles(high);
    return high;
}

/* The codes of step s of the unit; chunk has those of steps s and s ^ 1. */
GB_INLINE gb_codes codes_of_step(int bits, gb_codes chunk, gb_codes high, int s) {
    gb_codes codes = s % 2 == 0 ? low_nibbles(chunk) : high_nibbles(chunk);
    return bits == 4 ? codes : with_high_bits(codes, high, bits, s);
}

enum { CHUNK = 64 };

/* 16 inputs with codes of at most 6 bits. */
GB_INLINE void add_nibble_unit(int bits, int tokens, int blocks, place *at, bool is_odd, const int8_t *x,
                               gb_wide sums[][GB_TOKENS]) {
    gb_narrow narrow[GB_BLOCKS][GB_TOKENS];
    gb_codes high[GB_BLOCKS];
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++) {
        if (bits > 4)
            high[b] = high_of_unit(bits, &at[b], is_odd);
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            narrow[b][t] = gb_zero_narrow();
    }
#pragma GCC unroll 4
    for (int s = 0; s < GB_UNIT_STEPS; s++) {
        gb_codes codes[GB_BLOCKS];
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++) {
            const uint8_t *chunk = at[b].low + CHUNK * (s / 2);
            if (s % 2 == 0)
                gb_fetch(chunk, at[b].low_ahead);
            codes[b] = codes_of_step(bits, gb_load_codes(chunk), high[b], s);
        }
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
#pragma GCC unroll 2
            for (int b = 0; b < blocks; b++) {
                gb_dot(&sums[b][t], &narrow[b][t], codes[b], x + t * GB_UNIT + 4 * s);
                if ((s + 1) % gb_narrow_steps(bits) == 0 || s + 1 == GB_UNIT_STEPS)
                    gb_fold(&sums[b][t], &narrow[b][t]);
            }
    }
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++) {
        at[b].low += 2 * CHUNK;
        if (bits > 4)
            gb_fetch(at[b].high, at[b].high_ahead);
        if (bits == 6 || (bits == 5 && is_odd))
            at[b].high += CHUNK;
    }
}

/* steps * 4 inputs with codes that are bytes. */
GB_INLINE void add_byte_steps(int steps, int tokens, int blocks, place *at, const int8_t *x,
                              gb_wide sums[][GB_TOKENS]) {
#pragma GCC unroll 4
    for (int s = 0; s < steps; s++) {
        gb_codes codes[GB_BLOCKS];
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++) {
            gb_fetch(at[b].low, at[b].low_ahead);
            codes[b] = gb_load_codes(at[b].low);
            at[b].low += CHUNK;
        }
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
#pragma GCC unroll 2
            for (int b = 0; b < blocks; b++)
                gb_dot_bytes(&sums[b][t], codes[b], x + t * GB_UNIT + 4 * s);
    }
}

/* Where a kernel is in a block's scales and biases. */
typedef struct affines {
    const void *scales, *biases; /* biases NULL: none */
    gb_dtype dtype;
    size_t at, step;
} affines;

GB_INLINE gb_lanes load_affine(const affines *a, const void *from) {
    if (a->dtype == GB_F16)
        return gb_load_lanes(from, GB_F16, a->at);
    return a->dtype == GB_BF16 ? gb_load_lanes(from, GB_BF16, a->at) : gb_load_lanes(from, GB_F32, a->at);
}

GB_INLINE void fetch_affine(const affines *a, const void *from) {
    if (a->dtype != GB_F32) /* those are made of what was fetched */
        gb_fetch((const uint16_t *)from + a->at, GB_FETCH_SCALES);
}

/* y + (sx * scale) * d, and + t * bias; moves on to the next group. */
GB_INLINE void add_group(int tokens, affines *a, const float *x_scales, const float *x_sums,
                         const gb_wide *sums, gb_lanes *y) {
    const gb_lanes scale = load_affine(a, a->scales);
    fetch_affine(a, a->scales);
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        y[t] = gb_add_product(y[t], gb_multiply_by(scale, x_scales[t]), gb_floats_of(sums[t]));
    if (a->biases) {
        const gb_lanes bias = load_affine(a, a->biases);
        fetch_affine(a, a->biases);
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            y[t] = gb_add_scaled(y[t], x_sums[t], bias);
    }
    a->at += a->step;
}

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

/* The products of count inputs, a group or what is left of it. Returns where the next group's x begins. */
GB_INLINE const int8_t *add_inputs(int bits, int tokens, int blocks, size_t count, place *at, bool *is_odd,
                                   const int8_t *x, gb_wide sums[][GB_TOKENS]) {
    for (size_t u = count / GB_UNIT; u > 0; u--, x += tokens * GB_UNIT) {
        if (bits == 8)
            add_byte_steps(GB_UNIT_STEPS, tokens, blocks, at, x, sums);
        else
            add_nibble_unit(bits, tokens, blocks, at, *is_odd, x, sums);
        *is_odd = !*is_odd;
    }
    for (size_t s = count % GB_UNIT / 4; bits == 8 && s > 0; s--, x += 4)
        add_byte_steps(1, tokens, blocks, at, x, sums);
    return x;
}

GB_INLINE void add_piece(int bits, int tokens, int blocks, const gb_piece *piece) {
    const bool in_registers = blocks * tokens * GB_PARTS <= 8;
    const float *x_scales = piece->scales, *x_sums = piece->sums;
    const int32_t *starts = piece->starts;
    const size_t group = piece->group;
    affines affine[GB_BLOCKS];
    float(*results[GB_BLOCKS])[16];
    gb_lanes y[GB_BLOCKS][GB_TOKENS];
    place at[GB_BLOCKS];
    const int8_t *x = piece->codes;
    bool is_odd = false;
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++) {
        at[b] = (place){piece->blocks[b].low, piece->blocks[b].high, piece->blocks[b].low_ahead,
                        piece->blocks[b].high_ahead};
        affine[b] = (affines){piece->blocks[b].scales, piece->has_bias ? piece->blocks[b].biases : NULL,
                              piece->scale_dtype, 0, piece->scale_step};
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
        x = add_inputs(bits, tokens, blocks, count, at, &is_odd, x, sums);
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++) {
            if (!in_registers)
                load_results(tokens, results[b], y[b]);
            add_group(tokens, &affine[b], x_scales, x_sums, sums[b], y[b]);
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

#define KERNEL(bits, tokens)                                                                                 \
    static void add_piece_##bits##_##tokens(const gb_piece *piece) {                                         \
        add_piece(bits, tokens, (tokens) == 1 ? 1 : GB_BLOCKS, piece);                                       \
    }
#define KERNELS_OF(tokens) KERNEL(4, tokens) KERNEL(5, tokens) KERNEL(6, tokens) KERNEL(8, tokens)
#define NAMES_OF(tokens)                                                                                     \
    { add_piece_4_##tokens, add_piece_5_##tokens, add_piece_6_##tokens, add_piece_8_##tokens }

KERNELS_OF(1)
KERNELS_OF(2)
KERNELS_OF(3)
KERNELS_OF(4)
#if GB_VECTOR_LANES == 16
KERNELS_OF(5)
KERNELS_OF(6)
KERNELS_OF(7)
KERNELS_OF(8)
#endif

static void (*const kernels[GB_TOKENS][4])(const gb_piece *piece) = {
    NAMES_OF(1), NAMES_OF(2), NAMES_OF(3), NAMES_OF(4),
#if GB_VECTOR_LANES == 16
    NAMES_OF(5), NAMES_OF(6), NAMES_OF(7), NAMES_OF(8),
#endif
};

void GB_FOR_ISA(gb_add_piece)(int bits, const gb_piece *piece) {
    kernels[piece->tokens - 1][bits == 8 ? 3 : bits - 4](piece);
}
