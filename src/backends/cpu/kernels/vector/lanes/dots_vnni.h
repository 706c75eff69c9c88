/* SPDX-License-Identifier: Apache-2.0
 *
 * dots.h by vpdpbusd, in registers of 512 or 256 bits.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_VNNI_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_VNNI_H

#if defined(__AVX512VNNI__)
enum { GB_TOKENS = 8, GB_BLOCKS = 2 };
#else
enum { GB_TOKENS = 4, GB_BLOCKS = 1 };
#endif

enum { GB_BYTE_OFFSET = 0 };

GB_INLINE void gb_dot_bytes(gb_wide *sum, gb_codes codes, const int8_t *x) {
#if defined(__AVX512VNNI__)
    sum->part[0] = (gb_vector_integers)_mm512_dpbusd_epi32((__m512i)sum->part[0], (__m512i)codes.part[0],
                                                           _mm512_set1_epi32((int)gb_load_four(x)));
#else
    const __m256i four = _mm256_set1_epi32((int)gb_load_four(x));
#pragma GCC unroll 2
    for (int p = 0; p < GB_PARTS; p++)
        sum->part[p] =
            (gb_vector_integers)_mm256_dpbusd_avx_epi32((__m256i)sum->part[p], (__m256i)codes.part[p], four);
#endif
}

GB_INLINE void gb_dot(gb_wide *sum, gb_narrow *narrow, gb_codes codes, const int8_t *x) {
    (void)narrow;
    gb_dot_bytes(sum, codes, x);
}

#endif
