/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of pairs of bfloat16 numbers, added to 16 float32 sums. A product of two such numbers is exact in
 * float32, so that an instruction for pairs, two fma and two products with additions have the same bits,
 * where nothing is subnormal and no product overflows.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LINEAR_PAIRS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LINEAR_PAIRS_H

#include "backends/cpu/kernels/vector/lanes/tile.h"

enum { GB_PAIRED = 2 * GB_LANES /* numbers of 16 pairs */ };

typedef struct gb_pairs {
    gb_vector_bits part[GB_PARTS];
} gb_pairs;

GB_INLINE gb_pairs gb_load_pairs(const uint16_t *from) {
    gb_pairs pairs;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        memcpy(&pairs.part[p], from + 2 * GB_VECTOR_LANES * p, sizeof pairs.part[p]);
    return pairs;
}

/* The last count < 32 numbers of a row, padded with zeros. */
GB_INLINE gb_pairs gb_load_pairs_tail(const uint16_t *from, size_t count) {
    uint16_t numbers[GB_PAIRED] = {0};
    memcpy(numbers, from, count * sizeof *from);
    return gb_load_pairs(numbers);
}

/* sum + a * b, whose product is exact, so that one rounding gives the bits of two. */
GB_INLINE gb_vector gb_add_exact(gb_vector sum, gb_vector_bits a, gb_vector_bits b) {
#if defined(__AVX512F__)
    return (gb_vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__FMA__)
    return (gb_vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
    return (gb_vector)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
    return sum + (gb_vector)a * (gb_vector)b;
#endif
}

/* Of each pair the second product first. */
GB_INLINE gb_lanes gb_add_pairs(gb_lanes sum, gb_pairs a, gb_pairs b) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
#if defined(__AVX512BF16__)
        sum.part[p] =
            (gb_vector)_mm512_dpbf16_ps((__m512)sum.part[p], (__m512bh)a.part[p], (__m512bh)b.part[p]);
#else
        sum.part[p] = gb_add_exact(sum.part[p], a.part[p] & 0xffff0000u, b.part[p] & 0xffff0000u);
        sum.part[p] = gb_add_exact(sum.part[p], a.part[p] << 16, b.part[p] << 16);
#endif
    }
    return sum;
}

/* Numbers i .. i + count - 1 of a tile, at most 32. */
GB_INLINE void gb_add_pair_step(int rows, int columns, const uint16_t *weight, size_t stride,
                                const uint16_t *const *x, size_t i, size_t count, size_t ahead,
                                gb_lanes sums[][GB_TILE_COLUMNS]) {
    gb_pairs column[GB_TILE_COLUMNS];
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++)
        column[c] = gb_load_pairs(x[c] + i);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        const uint16_t *from = weight + (size_t)r * stride + i;
        const gb_pairs row = count == GB_PAIRED ? gb_load_pairs(from) : gb_load_pairs_tail(from, count);
        gb_fetch_ahead(from, ahead);
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sums[r][c] = gb_add_pairs(sums[r][c], row, column[c]);
    }
}

/* gb_add_tile of rows and columns in bfloat16, of any count; x[c] has zeros up to a multiple of 32. */
GB_INLINE void gb_add_pair_tile(int rows, int columns, const uint16_t *weight, size_t stride,
                                const uint16_t *const *x, size_t count, size_t ahead,
                                gb_lanes sums[][GB_TILE_COLUMNS]) {
    const size_t whole = count - count % GB_PAIRED;
    for (size_t i = 0; i < whole; i += GB_PAIRED)
        gb_add_pair_step(rows, columns, weight, stride, x, i, GB_PAIRED, ahead, sums);
    if (whole < count)
        gb_add_pair_step(rows, columns, weight, stride, x, whole, count - whole, 0, sums);
}

#endif
