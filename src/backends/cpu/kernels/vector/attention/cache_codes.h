/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of the codes of tensor/cache_codes.h as float32 lanes. Only attention includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_CACHE_CODES_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_ATTENTION_CACHE_CODES_H

#include "backends/cpu/kernels/vector/lanes/lanes.h"
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "tensor/cache_codes.h"

enum { GB_GROUP_LANES = GB_CODE_GROUP / GB_LANES };
_Static_assert((int)GB_GROUP_LANES == 2,
               "the low and the high four bits of a group's bytes are 16 lanes each");

/* A float16 in all lanes. */
GB_INLINE gb_vector gb_load_scale(const uint8_t *from) {
    uint16_t half;
    memcpy(&half, from, sizeof half);
#if defined(__AVX512F__)
    return (gb_vector)_mm512_cvtph_ps(_mm256_set1_epi16((short)half));
#elif defined(__F16C__)
    return (gb_vector)_mm256_cvtph_ps(_mm_set1_epi16((short)half));
#else
    return gb_float_from_f16(half) - (gb_vector){0};
#endif
}

GB_INLINE gb_vector gb_to_floats(gb_vector_integers integers) {
    return __builtin_convertvector(integers, gb_vector);
}

/* Elements 32 g .. 32 g + 31 of the head of a row; dtype is a constant where this is inlined. */
GB_INLINE void gb_load_group(const gb_cache_rows *head, gb_dtype dtype, const void *row, size_t g,
                             gb_lanes group[GB_GROUP_LANES]) {
    const uint8_t *codes = (const uint8_t *)row + gb_code_bytes(dtype, g * GB_CODE_GROUP);
    const gb_vector scale =
        gb_load_scale((const uint8_t *)row + head->scales + gb_code_scale_bytes(g * GB_CODE_GROUP));
#pragma GCC unroll 8
    for (int p = 0; p < GB_PARTS; p++) {
        if (dtype == GB_Q8) {
            const uint8_t *high = codes + GB_LANES;
            group[0].part[p] = gb_to_floats(gb_widen_signed_bytes(codes + p * GB_VECTOR_LANES)) * scale;
            group[1].part[p] = gb_to_floats(gb_widen_signed_bytes(high + p * GB_VECTOR_LANES)) * scale;
        } else {
            const gb_vector_integers bytes = (gb_vector_integers)gb_widen_bytes(codes + p * GB_VECTOR_LANES);
            group[0].part[p] = gb_to_floats((bytes & 15) - 8) * scale;
            group[1].part[p] = gb_to_floats((bytes >> 4) - 8) * scale;
        }
    }
}

#endif
