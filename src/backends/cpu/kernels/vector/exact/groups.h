/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of progressive formats: their scales and zeros for 16 rows, and products of a span of inputs. Only
 * this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_EXACT_GROUPS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_EXACT_GROUPS_H

#include "backends/cpu/kernels/vector/exact/exact.h"
#include "backends/cpu/kernels/vector/interleaved/unit.h"

/* A group of 16 rows: scale, and zero * scale. */
typedef struct gb_group_scales {
    gb_vector_integers scale[GB_PARTS], zero[GB_PARTS];
} gb_group_scales;

GB_INLINE gb_group_scales gb_load_group(int bits, const uint8_t *from) {
    gb_group_scales group;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_vector_bits bytes = gb_widen_bytes(from + p * GB_VECTOR_LANES);
        const gb_vector_bits scale = (bytes & ((1u << (8 - bits)) - 1u)) + 1u;
        const gb_vector_words zero = (gb_vector_words)(bytes >> (8 - bits)) * (gb_vector_words)scale;
        group.scale[p] = (gb_vector_integers)scale;
        group.zero[p] = (gb_vector_integers)zero;
    }
    return group;
}

/* What makes codes of 16 rows bytes w + 128: scale in both halves of each lane, and 128 - zero * scale in
 * each byte. */
typedef struct gb_byte_scales {
    gb_vector_words scale[GB_PARTS];
    gb_vector_bits offset[GB_PARTS];
} gb_byte_scales;

GB_INLINE gb_byte_scales gb_byte_scales_of(const gb_group_scales *group) {
    gb_byte_scales to;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        const gb_vector_bits scale = (gb_vector_bits)group->scale[p];
        const gb_vector_bits offset = (gb_vector_bits)(GB_BYTE_CENTER - group->zero[p]);
        const gb_vector_bits two = offset | offset << 8;
        to.scale[p] = (gb_vector_words)(scale | scale << 16);
        to.offset[p] = two | two << 16;
    }
    return to;
}

/* No product and no sum of a byte carries into the next one. */
GB_INLINE gb_codes gb_scale_codes(gb_codes codes, const gb_byte_scales *by) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] = (gb_vector_bits)((gb_vector_words)codes.part[p] * by->scale[p]) + by->offset[p];
    return codes;
}

/* Where a span's codes are read; moves on by one step of 4 inputs. */
typedef struct gb_span_codes {
    gb_codes chunk, high; /* of this step and the next one or the one before; bits over 4 */
} gb_span_codes;

GB_INLINE gb_codes gb_next_codes(int bits, int s, gb_code_place *at, gb_span_codes *span) {
    if (bits > 4 && s % GB_UNIT_STEPS == 0)
        span->high = gb_high_of_unit(bits, at, s > 0);
    if (s % 2 == 0) {
        gb_fetch(at->low, at->low_ahead);
        span->chunk = gb_load_codes(at->low);
        at->low += GB_CHUNK;
    }
    if (bits > 4 && (s + 1 == GB_SPAN_STEPS || (bits == 6 && (s + 1) % GB_UNIT_STEPS == 0))) {
        gb_fetch(at->high, at->high_ahead);
        at->high += GB_CHUNK;
    }
    return gb_codes_of_step(bits, span->chunk, span->high, s % GB_UNIT_STEPS);
}

#endif
