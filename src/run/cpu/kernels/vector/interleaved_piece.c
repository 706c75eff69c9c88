/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

/* bits and tokens are constants where the functions of this file are inlined: a kernel for each pair, whose
 * sums stay in registers. */

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

/* Where a kernel is in the codes. */
typedef struct place {
    const uint8_t *low, *high;
    const int8_t *x;
    bool is_odd; /* 5 bits: the unit is the second one of its bytes of high bits */
} place;

GB_INLINE gb_codes high_of_unit(int bits, const place *at) {
    gb_codes high = gb_load_codes(at->high);
    if (bits == 5 && at->is_odd)
        high = high_nibbles(high);
    return high;
}

/* The codes of step s of the unit; chunk has those of steps s and s ^ 1. */
GB_INLINE gb_codes codes_of_step(int bits, gb_codes chunk, gb_codes high, int s) {
    gb_codes codes = s % 2 == 0 ? low_nibbles(chunk) : high_nibbles(chunk);
    return bits == 4 ? codes : with_high_bits(codes, high, bits, s);
}

GB_INLINE void fetch(const uint8_t *from) {
    __builtin_prefetch((const void *)((uintptr_t)from + GB_FETCH_CODES));
}

/* 16 inputs with codes of at most 6 bits. */
GB_INLINE void add_nibble_unit(int bits, int tokens, place *at, gb_wide *sums) {
    enum { CHUNK = 64 };
    gb_narrow narrow[GB_TOKENS];
    gb_codes high = {0};
    if (bits > 4)
        high = high_of_unit(bits, at);
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        narrow[t] = gb_zero_narrow();
#pragma GCC unroll 4
    for (int s = 0; s < GB_UNIT_STEPS; s++) {
        if (s % 2 == 0)
            fetch(at->low + CHUNK * (s / 2));
        const gb_codes codes = codes_of_step(bits, gb_load_codes(at->low + CHUNK * (s / 2)), high, s);
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++) {
            gb_dot(&sums[t], &narrow[t], codes, at->x + t * GB_UNIT + 4 * s);
            if ((s + 1) % gb_narrow_steps(bits) == 0 || s + 1 == GB_UNIT_STEPS)
                gb_fold(&sums[t], &narrow[t]);
        }
    }
    at->low += 2 * CHUNK;
    if (bits > 4)
        fetch(at->high);
    if (bits == 6 || at->is_odd)
        at->high += CHUNK;
    at->is_odd = bits == 5 && !at->is_odd;
}

/* steps * 4 inputs with codes that are bytes. */
GB_INLINE void add_byte_steps(int steps, int tokens, place *at, gb_wide *sums) {
    enum { CHUNK = 64 };
#pragma GCC unroll 4
    for (int s = 0; s < steps; s++) {
        fetch(at->low);
        const gb_codes codes = gb_load_codes(at->low);
        at->low += CHUNK;
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            gb_dot_bytes(&sums[t], codes, at->x + t * GB_UNIT + 4 * s);
    }
}

/* y + (sx * scale) * d, and + t * bias. */
GB_INLINE void add_group(const gb_piece *piece, const gb_tile_of_tokens *tile, int tokens, size_t g,
                         const gb_wide *sums, gb_lanes *y) {
    const gb_lanes scale = gb_load_lanes(piece->scales, GB_F32, g * piece->scale_step);
    const gb_lanes bias = gb_load_lanes(piece->biases, GB_F32, g * piece->scale_step);
    const size_t first = g * (size_t)tokens;
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        y[t] = gb_add_product(y[t], gb_multiply_by(scale, tile->scales[first + (size_t)t]),
                              gb_floats_of(sums[t]));
    if (!piece->has_bias)
        return;
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        y[t] = gb_add_scaled(y[t], tile->sums[first + (size_t)t], bias);
}

GB_INLINE void add_piece(int bits, int tokens, const gb_piece *piece, const gb_tile_of_tokens *tile) {
    gb_lanes y[GB_TOKENS];
    place at = {piece->low, piece->high, tile->codes, false};
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        y[t] = tile->is_first ? gb_zero_lanes() : gb_load_lanes(tile->y[t], GB_F32, 0);
    for (size_t g = 0, left = piece->inputs; left > 0; g++) {
        gb_wide sums[GB_TOKENS];
        size_t count = left < piece->group ? left : piece->group;
#pragma GCC unroll 8
        for (int t = 0; t < tokens; t++)
            sums[t] = gb_fill_wide(tile->starts[g * (size_t)tokens + (size_t)t]);
        for (size_t u = count / GB_UNIT; u > 0; u--, at.x += tokens * GB_UNIT) {
            if (bits == 8)
                add_byte_steps(GB_UNIT_STEPS, tokens, &at, sums);
            else
                add_nibble_unit(bits, tokens, &at, sums);
        }
        for (size_t s = count % GB_UNIT / 4; bits == 8 && s > 0; s--, at.x += 4)
            add_byte_steps(1, tokens, &at, sums);
        add_group(piece, tile, tokens, g, sums, y);
        left -= count;
    }
#pragma GCC unroll 8
    for (int t = 0; t < tokens; t++)
        gb_store_lanes(tile->y[t], y[t]);
}

#define KERNEL(bits, tokens)                                                                                 \
    static void add_piece_##bits##_##tokens(const gb_piece *piece, const gb_tile_of_tokens *tile) {          \
        add_piece(bits, tokens, piece, tile);                                                                \
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

typedef void (*piece_kernel)(const gb_piece *piece, const gb_tile_of_tokens *tile);

static const piece_kernel kernels[GB_TOKENS][4] = {NAMES_OF(1), NAMES_OF(2), NAMES_OF(3),
                                                   NAMES_OF(4),
#if GB_VECTOR_LANES == 16
                                                   NAMES_OF(5), NAMES_OF(6), NAMES_OF(7),
                                                   NAMES_OF(8)
#endif
};

void GB_FOR_ISA(gb_add_piece)(int bits, const gb_piece *piece, const gb_tile_of_tokens *tile) {
    kernels[tile->tokens - 1][bits == 8 ? 3 : bits - 4](piece, tile);
}
