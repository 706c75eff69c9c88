/* SPDX-License-Identifier: Apache-2.0
 *
 * dots.h by vpmaddubsw, in registers of 256 or 512 bits: sums of two products in 16 bits.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_AVX2_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_AVX2_H

#if defined(__AVX512BW__)
typedef __m512i gb_register;
#define GB_OF_REGISTER(name) _mm512_##name
enum { GB_TOKENS = 8, GB_BLOCKS = 1 };
#else
typedef __m256i gb_register;
#define GB_OF_REGISTER(name) _mm256_##name
enum { GB_TOKENS = 4, GB_BLOCKS = 1 };
#endif

enum { GB_BYTE_OFFSET = 128 };

GB_INLINE gb_vector_integers gb_sum_pairs(gb_vector_shorts shorts) {
    return (gb_vector_integers)GB_OF_REGISTER(madd_epi16)((gb_register)shorts, GB_OF_REGISTER(set1_epi16)(1));
}

GB_INLINE void gb_fold_scaled(gb_wide *sum, const gb_wide *part, gb_narrow *narrow,
                              const gb_vector_integers *scale) {
    (void)part;
#pragma GCC unroll 2
    for (int p = 0; p < GB_PARTS; p++)
        sum->part[p] += (gb_vector_integers)GB_OF_REGISTER(madd_epi16)(
            (gb_register)narrow->part[p], (gb_register)(scale[p] | scale[p] << 16));
    *narrow = gb_zero_narrow();
}

GB_INLINE void gb_dot(gb_wide *sum, gb_narrow *narrow, gb_codes codes, const int8_t *x) {
    (void)sum;
    const gb_register four = GB_OF_REGISTER(set1_epi32)((int)gb_load_four(x));
#pragma GCC unroll 2
    for (int p = 0; p < GB_PARTS; p++)
        narrow->part[p] += (gb_vector_shorts)GB_OF_REGISTER(maddubs_epi16)((gb_register)codes.part[p], four);
}

/* q - 128 fits into a signed byte; its sign moves to x, and two products of at most 128 * 127 into 16 bits.
 */
GB_INLINE void gb_dot_bytes(gb_wide *sum, gb_codes codes, const int8_t *x) {
    const gb_register four = GB_OF_REGISTER(set1_epi32)((int)gb_load_four(x));
#pragma GCC unroll 2
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_register q = (gb_register)(codes.part[p] ^ 0x80808080u);
#if defined(__AVX512BW__)
        const __m512i signed_four =
            _mm512_mask_sub_epi8(four, _mm512_movepi8_mask(q), _mm512_setzero_si512(), four);
#else
        const __m256i signed_four = _mm256_sign_epi8(four, q);
#endif
        sum->part[p] += gb_sum_pairs(
            (gb_vector_shorts)GB_OF_REGISTER(maddubs_epi16)(GB_OF_REGISTER(abs_epi8)(q), signed_four));
    }
}

#endif
