/* SPDX-License-Identifier: Apache-2.0
 *
 * What benches share: random numbers, and rows of random logits, that are the same in every run.
 */
#ifndef GUMBEL_BENCH_RANDOM_LOGITS_H
#define GUMBEL_BENCH_RANDOM_LOGITS_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea and Flood 2014). */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* About normal, with mean 0 and standard deviation 1. */
static inline float next_normal(uint64_t *state) {
    const uint64_t random = next_random(state);
    float sum = -4.0f;
    for (int i = 0; i < 4; i++)
        sum += (float)(random >> (16 * i) & 0xffff) * 0x1p-15f;
    return sum * 0x1.bb67aep-1f;
}

/* A row of count logits: a bulk of standard deviation 1 around -depth and, where that is not 0, 40 tokens
 * from 0 down to -11.7. */
static inline void fill_row(float *logits, uint32_t count, float depth, uint64_t seed) {
    uint64_t state = seed;
    for (uint32_t i = 0; i < count; i++)
        logits[i] = next_normal(&state) - depth;
    for (int i = 0; i < 40 && depth > 0.0f; i++)
        logits[(next_random(&state) >> 32) % count] = -0.3f * (float)i;
}

#endif
