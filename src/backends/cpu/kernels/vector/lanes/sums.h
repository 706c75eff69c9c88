/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of many sets of 16 lanes at once, each by the fixed tree of gb_sum_lanes: one step of it on two
 * registers that have been shuffled together, so that no lane of an addition is idle.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_SUMS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_SUMS_H

#include "backends/cpu/kernels/vector/lanes/lanes.h"

/* How many sums come out of one call. */
enum { GB_SUMS = GB_VECTOR_LANES };

/* The first half of the lanes of each sum in a and b, and the second half, where a sum still has 4 lanes,
 * and where it has 2. */
#if GB_VECTOR_LANES == 16
#define GB_HALVES_OF_8(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +               \
     __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31))
#define GB_HALVES_OF_4(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +               \
     __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31))
#define GB_HALVES_OF_2(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +              \
     __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31))
#elif GB_VECTOR_LANES == 8
#define GB_HALVES_OF_8(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +                                               \
     __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#define GB_HALVES_OF_4(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13) +                                               \
     __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15))
#define GB_HALVES_OF_2(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +                                              \
     __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15))
#else
#define GB_HALVES_OF_4(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7))
#define GB_HALVES_OF_2(a, b)                                                                                 \
    (__builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7))
#endif

/* sums[i] = gb_sum_lanes(lanes[i]), i < GB_SUMS. */
GB_INLINE void gb_sum_many(const gb_lanes *lanes, float *sums) {
    gb_vector v[GB_SUMS];
#if GB_VECTOR_LANES == 16
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const gb_vector a = lanes[2 * i].part[0], b = lanes[2 * i + 1].part[0];
        v[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        v[i] = GB_HALVES_OF_8(v[2 * i], v[2 * i + 1]);
#elif GB_VECTOR_LANES == 8
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        v[i] = GB_HALVES_OF_8(lanes[2 * i].part[0] + lanes[2 * i].part[1],
                              lanes[2 * i + 1].part[0] + lanes[2 * i + 1].part[1]);
#else
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        v[i] = (lanes[i].part[0] + lanes[i].part[2]) + (lanes[i].part[1] + lanes[i].part[3]);
#endif
    v[0] = GB_HALVES_OF_4(v[0], v[1]);
    v[1] = GB_HALVES_OF_4(v[2], v[3]);
    v[0] = GB_HALVES_OF_2(v[0], v[1]);
    memcpy(sums, &v[0], sizeof v[0]);
}

#endif
