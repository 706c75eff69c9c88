/* SPDX-License-Identifier: Apache-2.0
 *
 * The checksum of docs/sampling.md, computed on the device: sum over words b of (2 b + 1) mix(bits of
 * noise(b)).
 */
#ifndef GUMBEL_TESTS_CUDA_NOISE_SUM_H
#define GUMBEL_TESTS_CUDA_NOISE_SUM_H

#include <stdint.h>

#if defined(__CUDACC__)
#define MIX_ANYWHERE __host__ __device__ static inline
#else
#define MIX_ANYWHERE static inline
#endif

/* The first output of splitmix64 in that state. */
MIX_ANYWHERE uint64_t mixed_bits(uint32_t state) {
    uint64_t z = state + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Adds the checksum of words 0 .. words - 1 to *sum, which lies on the device. */
void add_noise(uint64_t words, uint64_t *sum);

#endif
