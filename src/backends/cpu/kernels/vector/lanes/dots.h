/* SPDX-License-Identifier: Apache-2.0
 *
 * Dot products of 16 rows of unsigned codes, four columns at a time, with four 8-bit activations: the one
 * thing of the interleaved kernels that every instruction set does in its own way. All are exact.
 *
 * A set defines GB_TOKENS, the most tokens that a tile has, GB_BLOCKS, the blocks of 16 rows that it takes at
 * once, and
 *     gb_wide       16 integers of 32 bits, one per row
 *     gb_narrow     partial sums that gb_fold adds to a gb_wide; where products are summed in 32 bits at
 *                   once, nothing
 *     gb_dot        adds products to either; codes have at most 6 bits, and gb_fold comes after at most
 *                   gb_narrow_steps(bits) of these
 *     gb_dot_bytes  the same for codes of 8 bits, minus GB_BYTE_OFFSET, added to the wide sums at once
 *     gb_fold_scaled  adds the products of a new gb_wide and gb_narrow, times a scale of each row, to a sum
 *     GB_HAS_WIDE_DOTS  1 where gb_dot_bytes is as fast as gb_dot
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_H

#include "backends/cpu/kernels/vector/lanes/lanes.h"

typedef int16_t gb_vector_shorts __attribute__((vector_size(4 * GB_VECTOR_LANES)));
typedef uint16_t gb_vector_words __attribute__((vector_size(4 * GB_VECTOR_LANES)));

/* 16 rows of four bytes. */
typedef struct gb_codes {
    gb_vector_bits part[GB_PARTS];
} gb_codes;

typedef struct gb_wide {
    gb_vector_integers part[GB_PARTS];
} gb_wide;

GB_INLINE gb_codes gb_load_codes(const uint8_t *from) {
    gb_codes codes;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        memcpy(&codes.part[p], from + (size_t)p * sizeof codes.part[p], sizeof codes.part[p]);
    return codes;
}

GB_INLINE gb_wide gb_fill_wide(int32_t value) {
    gb_wide wide;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        wide.part[p] = (gb_vector_integers){0} + value;
    return wide;
}

/* sum - a * b, where a is 0 .. 2^15 - 1 and b fits into 16 bits with its sign. */
GB_INLINE gb_wide gb_take_product(gb_wide sum, const gb_vector_integers *a, int32_t b) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
#if defined(__AVX512BW__)
        sum.part[p] -= (gb_vector_integers)_mm512_madd_epi16((__m512i)a[p], _mm512_set1_epi32(b));
#elif defined(__AVX2__)
        sum.part[p] -= (gb_vector_integers)_mm256_madd_epi16((__m256i)a[p], _mm256_set1_epi32(b));
#else
        sum.part[p] -= a[p] * b;
#endif
    return sum;
}

GB_INLINE gb_wide gb_add_wide(gb_wide a, gb_wide b) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        a.part[p] += b.part[p];
    return a;
}

GB_INLINE gb_lanes gb_floats_of(gb_wide wide) {
    gb_lanes lanes;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        lanes.part[p] = __builtin_convertvector(wide.part[p], gb_vector);
    return lanes;
}

GB_INLINE uint32_t gb_load_four(const int8_t *x) {
    uint32_t four;
    memcpy(&four, x, sizeof four);
    return four;
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || (!defined(__AVX2__) && defined(__ARM_FEATURE_DOTPROD))
#define GB_HAS_WIDE_DOTS 1
#else
#define GB_HAS_WIDE_DOTS 0
#endif

typedef struct gb_narrow {
#if GB_HAS_WIDE_DOTS
    char none;
#else
    gb_vector_shorts part[GB_PARTS];
#endif
} gb_narrow;

#if GB_HAS_WIDE_DOTS
GB_INLINE int gb_narrow_steps(int bits) {
    (void)bits;
    return 1 << 30;
}

GB_INLINE gb_narrow gb_zero_narrow(void) {
    return (gb_narrow){0};
}

GB_INLINE void gb_fold(gb_wide *sum, gb_narrow *narrow) {
    (void)sum, (void)narrow;
}

GB_INLINE void gb_fold_scaled(gb_wide *sum, const gb_wide *part, gb_narrow *narrow,
                              const gb_vector_integers *scale) {
    (void)narrow;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        sum->part[p] += part->part[p] * scale[p];
}
#else
/* Sums of two products in 16 bits: so many steps fit, of codes of at most 4 bits 8. 15 * 127 * 2 * 8, 31 *
 * 127 * 2 * 4 and 63 * 127 * 2 * 2 are below 2^15. */
GB_INLINE int gb_narrow_steps(int bits) {
    return bits <= 4 ? 8 : bits == 5 ? 4 : 2;
}

GB_INLINE gb_narrow gb_zero_narrow(void) {
    gb_narrow narrow;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        narrow.part[p] = (gb_vector_shorts){0};
    return narrow;
}

/* The two 16-bit numbers of each lane. */
GB_INLINE gb_vector_integers gb_sum_pairs(gb_vector_shorts shorts);

GB_INLINE void gb_fold(gb_wide *sum, gb_narrow *narrow) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        sum->part[p] += gb_sum_pairs(narrow->part[p]);
    *narrow = gb_zero_narrow();
}
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include "backends/cpu/kernels/vector/lanes/dots_vnni.h"
#elif defined(__AVX2__)
#include "backends/cpu/kernels/vector/lanes/dots_avx2.h"
#elif defined(__ARM_FEATURE_DOTPROD)
#include "backends/cpu/kernels/vector/lanes/dots_neon.h"
#else
#include "backends/cpu/kernels/vector/lanes/dots_portable.h"
#endif

/* X(tokens) for each number of tokens that a tile of GB_TOKENS may have. */
#if GB_VECTOR_LANES == 16
#define GB_EACH_TILE(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define GB_EACH_TILE(X) X(1) X(2) X(3) X(4)
#endif

#endif
