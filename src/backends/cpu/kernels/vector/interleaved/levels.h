/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales and biases of two levels: small integers of 16 rows, and the block of rows that is multiplied while
 * they are read. Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_LEVELS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_LEVELS_H

#include "backends/cpu/kernels/vector/interleaved/unit.h"

/* Four groups of small integers of two levels, which share a super-scale. */
typedef struct gb_integers {
    gb_wide group[4];
} gb_integers;

GB_INLINE gb_wide gb_load_byte_lanes(const uint8_t *from) {
    gb_wide wide;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        wide.part[p] = (gb_vector_integers)gb_widen_bytes(from + p * GB_VECTOR_LANES);
    return wide;
}

GB_INLINE gb_integers gb_load_signed(const uint8_t *from) {
    gb_integers four;
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            four.group[g].part[p] = gb_widen_signed_bytes(from + g * GB_ROWS + p * GB_VECTOR_LANES);
    return four;
}

/* Four bits: nibbles of a byte for two groups. */
GB_INLINE gb_integers gb_load_four_bits(const uint8_t *low) {
    gb_integers four;
#pragma GCC unroll 2
    for (int g = 0; g < 4; g += 2) {
        const gb_wide both = gb_load_byte_lanes(low + g / 2 * GB_ROWS);
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++) {
            four.group[g].part[p] = both.part[p] & 15;
            four.group[g + 1].part[p] = both.part[p] >> 4;
        }
    }
    return four;
}

/* Six bits: the low four in nibbles of a byte for two groups, the others in a byte for all four. */
#if defined(__AVX512BW__)
/* All four groups at once, a quarter of the register each. */
GB_INLINE gb_integers gb_load_six_bits(const uint8_t *low, const uint8_t *high) {
    const __m512i shifts = _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4);
    const __m512i turns = _mm512_setr_epi64(4, 4, 2, 2, 0, 0, 62, 62);
    const __m256i two = _mm256_loadu_si256((const __m256i *)(const void *)low);
    const __m512i pairs = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)high));
    const __m512i nibbles = _mm512_srlv_epi64(
        _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), _mm512_castsi256_si512(two)),
        shifts);
    const __m512i codes =
        _mm512_or_si512(_mm512_and_si512(nibbles, _mm512_set1_epi8(0x0f)),
                        _mm512_and_si512(_mm512_rolv_epi64(pairs, turns), _mm512_set1_epi8(0x30)));
    gb_integers four;
    four.group[0].part[0] = (gb_vector_integers)_mm512_cvtepu8_epi32(_mm512_castsi512_si128(codes));
    four.group[1].part[0] = (gb_vector_integers)_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 1));
    four.group[2].part[0] = (gb_vector_integers)_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 2));
    four.group[3].part[0] = (gb_vector_integers)_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 3));
    return four;
}
#else
GB_INLINE gb_integers gb_load_six_bits(const uint8_t *low, const uint8_t *high) {
    const gb_wide pairs = gb_load_byte_lanes(high);
    gb_integers four;
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const gb_wide nibbles = gb_load_byte_lanes(low + g / 2 * GB_ROWS);
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            four.group[g].part[p] =
                (nibbles.part[p] >> 4 * (g % 2) & 15) | (pairs.part[p] << 4 >> 2 * g & 0x30);
    }
    return four;
}
#endif

/* Where a kernel is in the scales, or in the biases, of a block of rows. */
typedef struct gb_levels {
    const uint8_t *supers, *low, *high;  /* high: of 6 bits those over 4 */
    size_t supers_ahead, integers_ahead; /* bytes from what is used to what is prefetched */
} gb_levels;

GB_INLINE gb_lanes gb_next_super(gb_levels *levels) {
    const gb_lanes super = gb_load_lanes(levels->supers, GB_F16, 0);
    gb_fetch(levels->supers, levels->supers_ahead);
    levels->supers += GB_ROWS * sizeof(uint16_t);
    return super;
}

/* Those of the next four groups. */
GB_INLINE gb_integers gb_next_integers(gb_levels *levels, uint32_t scale_bits) {
    const gb_integers four = scale_bits == 8   ? gb_load_signed(levels->low)
                             : scale_bits == 4 ? gb_load_four_bits(levels->low)
                                               : gb_load_six_bits(levels->low, levels->high);
    gb_fetch(levels->low, levels->integers_ahead);
    levels->low += scale_bits == 8 ? 4 * GB_ROWS : 2 * GB_ROWS;
    if (scale_bits == 6) {
        gb_fetch(levels->high, levels->integers_ahead);
        levels->high += GB_ROWS;
    }
    return four;
}

GB_INLINE gb_lanes gb_negate_lanes(gb_lanes a) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        a.part[p] = -a.part[p];
    return a;
}

#endif
