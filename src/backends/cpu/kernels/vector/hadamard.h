/* SPDX-License-Identifier: Apache-2.0
 *
 * gb_hadamard of tensor/hadamard.h in vectors, with its bits: a - c is a + (-c). Only vector/ includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_HADAMARD_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_HADAMARD_H

#include "backends/cpu/kernels/vector/lanes/lanes.h"
#include "tensor/hadamard.h"

enum { GB_MOST_HADAMARD = 256, GB_MOST_HADAMARD_VECTORS = GB_MOST_HADAMARD / GB_VECTOR_LANES };

/* Lane l of the result is lane l ^ h. */
#if GB_VECTOR_LANES == 16
#define GB_SWAP_LANES_1(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#define GB_SWAP_LANES_2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define GB_SWAP_LANES_4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define GB_SWAP_LANES_8(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#elif GB_VECTOR_LANES == 8
#define GB_SWAP_LANES_1(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6)
#define GB_SWAP_LANES_2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5)
#define GB_SWAP_LANES_4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)
#else
#define GB_SWAP_LANES_1(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#define GB_SWAP_LANES_2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1)
#endif

/* The sign bits of the lanes that have bit h. */
GB_INLINE gb_vector_bits gb_signs_of(int h) {
    gb_vector_bits signs;
#pragma GCC unroll 16
    for (int l = 0; l < GB_VECTOR_LANES; l++)
        signs[l] = l & h ? 0x80000000u : 0;
    return signs;
}

/* Pairs within a vector. */
GB_INLINE gb_vector gb_hadamard_lanes(gb_vector v) {
    v = GB_SWAP_LANES_1(v) + (gb_vector)((gb_vector_bits)v ^ gb_signs_of(1));
    v = GB_SWAP_LANES_2(v) + (gb_vector)((gb_vector_bits)v ^ gb_signs_of(2));
#if GB_VECTOR_LANES >= 8
    v = GB_SWAP_LANES_4(v) + (gb_vector)((gb_vector_bits)v ^ gb_signs_of(4));
#endif
#if GB_VECTOR_LANES == 16
    v = GB_SWAP_LANES_8(v) + (gb_vector)((gb_vector_bits)v ^ gb_signs_of(8));
#endif
    return v;
}

/* size is a constant where this is inlined, a multiple of GB_VECTOR_LANES. */
GB_INLINE void gb_hadamard_block(const float *from, int size, float *to) {
    const int count = size / GB_VECTOR_LANES;
    gb_vector v[GB_MOST_HADAMARD_VECTORS];
#pragma GCC unroll 64
    for (int i = 0; i < count; i++)
        v[i] = gb_hadamard_lanes(gb_load_vector(from, GB_F32, (size_t)(i * GB_VECTOR_LANES)));
#pragma GCC unroll 8
    for (int h = 1; h < count; h *= 2)
#pragma GCC unroll 64
        for (int i = 0; i < count; i++) {
            if (i & h)
                continue;
            const gb_vector a = v[i], c = v[i + h];
            v[i] = a + c;
            v[i + h] = a - c;
        }
#pragma GCC unroll 64
    for (int i = 0; i < count; i++)
        memcpy(to + i * GB_VECTOR_LANES, &v[i], sizeof v[i]);
}

GB_INLINE void gb_hadamard_blocks(const float *from, size_t count, int size, float *to) {
    for (size_t at = 0; at < count; at += (size_t)size)
        gb_hadamard_block(from + at, size, to + at);
}

/* Transforms each block of a row, count elements, into `to`, which may be `from`. */
GB_INLINE void gb_hadamard_row(const float *from, size_t count, size_t size, float *to) {
    if (size == 256) {
        gb_hadamard_blocks(from, count, 256, to);
    } else if (size == 128) {
        gb_hadamard_blocks(from, count, 128, to);
    } else if (size == 64) {
        gb_hadamard_blocks(from, count, 64, to);
    } else if (size == 32) {
        gb_hadamard_blocks(from, count, 32, to);
    } else if (size == 16) {
        gb_hadamard_blocks(from, count, 16, to);
    } else {
        if (to != from)
            memcpy(to, from, count * sizeof *to);
        for (size_t at = 0; at < count; at += size)
            gb_hadamard(to + at, size);
    }
}

/* The same with the division: its own inverse but for rounding. */
GB_INLINE void gb_hadamard_orthonormal(const float *from, size_t count, size_t size, float *to) {
    const float scale = gb_hadamard_scale(size);
    gb_hadamard_row(from, count, size, to);
    for (size_t i = 0; i < count; i++)
        to[i] *= scale;
}

#endif
