/* SPDX-License-Identifier: Apache-2.0
 *
 * dots.h by sdot, whose factors are both signed: codes of up to 6 bits are positive as signed bytes too. With
 * the extension i8mm, by usdot, which takes codes as they are.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_NEON_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_NEON_H

enum { GB_TOKENS = 4, GB_BLOCKS = 1 };

#if defined(__ARM_FEATURE_MATMUL_INT8)
enum { GB_BYTE_OFFSET = 0 };
#else
enum { GB_BYTE_OFFSET = 128 };
#endif

/* Four sums of four products; codes are unsigned with i8mm, otherwise signed. */
GB_INLINE gb_vector_integers gb_dot_part(gb_vector_integers sum, gb_vector_bits codes, int8x16_t four) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
    return (gb_vector_integers)vusdotq_s32((int32x4_t)sum, (uint8x16_t)codes, four);
#else
    return (gb_vector_integers)vdotq_s32((int32x4_t)sum, (int8x16_t)codes, four);
#endif
}

GB_INLINE void gb_dot(gb_wide *sum, gb_narrow *narrow, gb_codes codes, const int8_t *x) {
    (void)narrow;
    const int8x16_t four = vreinterpretq_s8_u32(vdupq_n_u32(gb_load_four(x)));
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        sum->part[p] = gb_dot_part(sum->part[p], codes.part[p], four);
}

GB_INLINE void gb_dot_bytes(gb_wide *sum, gb_codes codes, const int8_t *x) {
    gb_narrow none = gb_zero_narrow();
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS && GB_BYTE_OFFSET > 0; p++)
        codes.part[p] ^= 0x80808080u;
    gb_dot(sum, &none, codes, x);
}

#endif
