/* SPDX-License-Identifier: Apache-2.0
 *
 * dots.h in vectors of the compiler: bytes 0 and 2 and bytes 1 and 3 as 16-bit numbers, whose products fit
 * into 16 bits.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_PORTABLE_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_DOTS_PORTABLE_H

enum { GB_TOKENS = 4, GB_BLOCKS = 1, GB_BYTE_OFFSET = 0 };

GB_INLINE gb_vector_integers gb_sum_pairs(gb_vector_shorts shorts) {
    const gb_vector_bits both = (gb_vector_bits)shorts;
    return ((gb_vector_integers)(both << 16) >> 16) + ((gb_vector_integers)both >> 16);
}

GB_INLINE void gb_fold_scaled(gb_wide *sum, const gb_wide *part, gb_narrow *narrow,
                              const gb_vector_integers *scale) {
    (void)part;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        sum->part[p] += gb_sum_pairs(narrow->part[p]) * scale[p];
    *narrow = gb_zero_narrow();
}

typedef struct gb_byte_pairs {
    gb_vector_shorts even, odd;
} gb_byte_pairs;

GB_INLINE gb_byte_pairs gb_code_pairs(gb_vector_bits codes) {
    return (gb_byte_pairs){(gb_vector_shorts)(codes & 0x00ff00ffu),
                           (gb_vector_shorts)(codes >> 8 & 0x00ff00ffu)};
}

GB_INLINE gb_byte_pairs gb_signed_pairs(const int8_t *x) {
    const gb_vector_bits four = (gb_vector_bits){0} + gb_load_four(x);
    return (gb_byte_pairs){(gb_vector_shorts)(four << 8) >> 8, (gb_vector_shorts)four >> 8};
}

GB_INLINE void gb_dot(gb_wide *sum, gb_narrow *narrow, gb_codes codes, const int8_t *x) {
    (void)sum;
    const gb_byte_pairs four = gb_signed_pairs(x);
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_byte_pairs q = gb_code_pairs(codes.part[p]);
        narrow->part[p] += q.even * four.even + q.odd * four.odd;
    }
}

GB_INLINE void gb_dot_bytes(gb_wide *sum, gb_codes codes, const int8_t *x) {
    const gb_byte_pairs four = gb_signed_pairs(x);
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_byte_pairs q = gb_code_pairs(codes.part[p]);
        sum->part[p] += gb_sum_pairs(q.even * four.even) + gb_sum_pairs(q.odd * four.odd);
    }
}

#endif
