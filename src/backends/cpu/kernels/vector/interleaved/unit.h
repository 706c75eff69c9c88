/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a few inputs of interleaved rows: what the kernels for one token and for several have in
 * common. kind (book.h), bits, tokens and blocks are constants where these functions are inlined, so that
 * sums stay in registers. Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_UNIT_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_UNIT_H

#include "backends/cpu/kernels/vector/interleaved/book.h"
#include "backends/cpu/kernels/vector/interleaved/interleaved.h"

/* What stands in the high nibbles is shifted into the low ones; what else comes along is not part of a code.
 */
GB_INLINE gb_codes gb_nibbles_of_step(gb_codes chunk, int s) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        chunk.part[p] = s % 2 == 0 ? chunk.part[p] : chunk.part[p] >> 4;
    return chunk;
}

GB_INLINE gb_codes gb_low_nibbles(gb_codes codes) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] &= 0x0f0f0f0fu;
    return codes;
}

/* The low nibbles of each byte of a, the high ones of b. */
GB_INLINE gb_vector_bits gb_join_nibbles(gb_vector_bits a, gb_vector_bits b) {
#if defined(__AVX512F__)
    enum { WHERE_FIRST_IS_SET_SECOND_ELSE_THIRD = 0xca };
    return (gb_vector_bits)_mm512_ternarylogic_epi32(_mm512_set1_epi32(0x0f0f0f0f), (__m512i)a, (__m512i)b,
                                                     WHERE_FIRST_IS_SET_SECOND_ELSE_THIRD);
#else
    return (a & 0x0f0f0f0fu) | (b & 0xf0f0f0f0u);
#endif
}

/* Pairs of bits of the step, of four in a byte. */
GB_INLINE gb_codes gb_pairs_of_step(gb_codes chunk, int s) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        chunk.part[p] = chunk.part[p] >> 2 * s & 0x03030303u;
    return chunk;
}

/* Puts the third bit, bit s of each byte of high, above them. */
GB_INLINE gb_codes gb_with_third_bits(gb_codes pairs, gb_codes high, int s) {
    const int left = 2 - s;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_vector_bits own = high.part[p] & 0x01010101u << s;
        pairs.part[p] |= left >= 0 ? own << (left & 31) : own >> (-left & 31);
    }
    return pairs;
}

/* Puts the bits of step s above the four of nibbles: 5-bit codes have one there, in bit s of each byte of
 * high, 6-bit codes two, in bits 2 s and 2 s + 1. Once the neighbours' bits have been taken off, what a shift
 * brings from another byte only comes to where the nibbles are. */
GB_INLINE gb_codes gb_with_high_bits(gb_codes nibbles, gb_codes high, int bits, int s) {
    const int left = bits == 5 ? 4 - s : 4 - 2 * s;
    const uint32_t mask = bits == 5 ? 0x01010101u << s : s % 2 == 0 ? 0x33333333u : 0xccccccccu;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_vector_bits own = high.part[p] & mask;
        nibbles.part[p] =
            gb_join_nibbles(nibbles.part[p], left >= 0 ? own << (left & 31) : own >> (-left & 31));
    }
    return nibbles;
}

/* Where a kernel is in the codes of a block. */
typedef struct gb_code_place {
    const uint8_t *low, *high;
    size_t low_ahead, high_ahead;
    const gb_raised_book *book; /* used where the kind is one with a book */
} gb_code_place;

/* One high bit: the odd unit is the second one of its bytes of them. */
GB_INLINE gb_codes gb_high_of_unit(int bits, const gb_code_place *at, bool is_odd) {
    const gb_codes high = gb_load_codes(at->high);
    return bits != 6 && is_odd ? gb_nibbles_of_step(high, 1) : high;
}

GB_INLINE bool gb_has_high_bits(int bits) {
    return bits == 3 || bits == 5 || bits == 6;
}

/* Bytes of high bits that the unit, odd or not, is the last one to use. */
GB_INLINE size_t gb_high_step(int bits, bool is_odd) {
    return bits == 6 || (gb_has_high_bits(bits) && is_odd) ? 64 : 0;
}

/* Steps whose low bits are in the same bytes. */
GB_INLINE int gb_chunk_steps(int bits) {
    return bits == 8 ? 1 : bits < 4 ? 4 : 2;
}

/* The codes of step s of the unit; chunk has those of all steps that share its bytes. */
GB_INLINE gb_codes gb_codes_of_step(int bits, gb_codes chunk, gb_codes high, int s) {
    if (bits == 8)
        return chunk;
    if (bits < 4)
        return bits == 2 ? gb_pairs_of_step(chunk, s)
                         : gb_with_third_bits(gb_pairs_of_step(chunk, s), high, s);
    const gb_codes nibbles = gb_nibbles_of_step(chunk, s);
    return bits == 4 ? gb_low_nibbles(nibbles) : gb_with_high_bits(nibbles, high, bits, s);
}

enum { GB_CHUNK = 64 };

/* Adds the products of a step, and folds them where no more would fit. */
GB_INLINE void gb_add_step(int kind, int s, gb_codes codes, const int8_t *x, gb_wide *sum,
                           gb_narrow *narrow) {
    if (gb_kind_has_bytes(kind)) {
        gb_dot_bytes(sum, codes, x);
        return;
    }
    gb_dot(sum, narrow, codes, x);
    if ((s + 1) % gb_narrow_steps(kind) == 0 || s + 1 == GB_UNIT_STEPS)
        gb_fold(sum, narrow);
}

/* 16 inputs with codes of at most 6 bits. */
GB_INLINE void gb_add_bits_unit(int kind, int tokens, int blocks, gb_code_place *at, bool is_odd,
                                const int8_t *x, gb_wide sums[][GB_TOKENS]) {
    const int bits = gb_kind_bits(kind), chunk_steps = gb_chunk_steps(bits);
    gb_narrow narrow[GB_BLOCKS][GB_TOKENS];
    gb_codes high[GB_BLOCKS], chunk[GB_BLOCKS];
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++) {
        if (gb_has_high_bits(bits))
            high[b] = gb_high_of_unit(bits, &at[b], is_odd);
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            narrow[b][t] = gb_zero_narrow();
    }
#pragma GCC unroll 4
    for (int s = 0; s < GB_UNIT_STEPS; s++) {
        gb_codes codes[GB_BLOCKS];
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++) {
            if (s % chunk_steps == 0) {
                const uint8_t *from = at[b].low + GB_CHUNK * (s / chunk_steps);
                gb_fetch(from, at[b].low_ahead);
                chunk[b] = gb_load_codes(from);
            }
            codes[b] = gb_codes_of_step(bits, chunk[b], high[b], s);
            if (kind >= GB_BY_BOOK)
                codes[b] = gb_look_up(at[b].book, codes[b]);
        }
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
#pragma GCC unroll 2
            for (int b = 0; b < blocks; b++)
                gb_add_step(kind, s, codes[b], x + t * GB_UNIT + 4 * s, &sums[b][t], &narrow[b][t]);
    }
#pragma GCC unroll 2
    for (int b = 0; b < blocks; b++) {
        at[b].low += GB_CHUNK * GB_UNIT_STEPS / chunk_steps;
        if (gb_has_high_bits(bits))
            gb_fetch(at[b].high, at[b].high_ahead);
        at[b].high += gb_high_step(bits, is_odd);
    }
}

/* steps * 4 inputs with codes that are bytes. */
GB_INLINE void gb_add_byte_steps(int steps, int tokens, int blocks, gb_code_place *at, const int8_t *x,
                                 gb_wide sums[][GB_TOKENS]) {
#pragma GCC unroll 4
    for (int s = 0; s < steps; s++) {
        gb_codes codes[GB_BLOCKS];
#pragma GCC unroll 2
        for (int b = 0; b < blocks; b++) {
            gb_fetch(at[b].low, at[b].low_ahead);
            codes[b] = gb_load_codes(at[b].low);
            at[b].low += GB_CHUNK;
        }
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
#pragma GCC unroll 2
            for (int b = 0; b < blocks; b++)
                gb_dot_bytes(&sums[b][t], codes[b], x + t * GB_UNIT + 4 * s);
    }
}

/* The products of a unit. Returns where the next one's x begins. */
GB_INLINE const int8_t *gb_add_unit(int kind, int tokens, int blocks, gb_code_place *at, bool *is_odd,
                                    const int8_t *x, gb_wide sums[][GB_TOKENS]) {
    if (kind == 8)
        gb_add_byte_steps(GB_UNIT_STEPS, tokens, blocks, at, x, sums);
    else
        gb_add_bits_unit(kind, tokens, blocks, at, *is_odd, x, sums);
    *is_odd = !*is_odd;
    return x + tokens * GB_UNIT;
}

/* The products of count inputs, a group or what is left of it. Returns where the next group's x begins. */
GB_INLINE const int8_t *gb_add_inputs(int kind, int tokens, int blocks, size_t count, gb_code_place *at,
                                      bool *is_odd, const int8_t *x, gb_wide sums[][GB_TOKENS]) {
    for (size_t u = count / GB_UNIT; u > 0; u--)
        x = gb_add_unit(kind, tokens, blocks, at, is_odd, x, sums);
    for (size_t s = count % GB_UNIT / 4; kind == 8 && s > 0; s--, x += 4)
        gb_add_byte_steps(1, tokens, blocks, at, x, sums);
    return x;
}

/* Where a kernel is in a block's scales and biases. */
typedef struct gb_affines {
    const void *scales, *biases; /* biases NULL: none */
    gb_dtype dtype;
    size_t at, step;
    size_t scales_ahead, biases_ahead; /* bytes from those that are used to those that are prefetched */
} gb_affines;

GB_INLINE gb_lanes gb_load_affine(const gb_affines *a, const void *from) {
    if (a->dtype == GB_F16)
        return gb_load_lanes(from, GB_F16, a->at);
    return a->dtype == GB_BF16 ? gb_load_lanes(from, GB_BF16, a->at) : gb_load_lanes(from, GB_F32, a->at);
}

GB_INLINE void gb_fetch_affine(const gb_affines *a, const void *from, size_t ahead) {
    if (a->dtype != GB_F32) /* those are made of what was fetched */
        gb_fetch((const uint16_t *)from + a->at, ahead);
}

/* y + (sx * scale) * d, and + t * bias; moves on to the next group. */
GB_INLINE void gb_add_group(int tokens, gb_affines *a, const float *x_scales, const float *x_sums,
                            const gb_wide *sums, gb_lanes *y) {
    const gb_lanes scale = gb_load_affine(a, a->scales);
    gb_fetch_affine(a, a->scales, a->scales_ahead);
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        y[t] = gb_add_product(y[t], gb_multiply_by(scale, x_scales[t]), gb_floats_of(sums[t]));
    if (a->biases) {
        const gb_lanes bias = gb_load_affine(a, a->biases);
        gb_fetch_affine(a, a->biases, a->biases_ahead);
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            y[t] = gb_add_scaled(y[t], x_sums[t], bias);
    }
    a->at += a->step;
}

#endif
