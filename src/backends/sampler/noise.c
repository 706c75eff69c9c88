/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes random_bits and gumbel_noise.
 */
#include "backends/sampler/rule.h"
#include "backends/sampler/sampler.h"

void gb_random_bits(uint64_t seed, uint32_t count, uint32_t *bits) {
    const uint32_t half = gb_word_half(count), upper = gb_word_upper(count);
    uint32_t *restrict first = bits, *restrict second = bits + upper;
    for (uint32_t i = 0; i < half; i++)
        gb_threefry(seed, i, upper + i, &first[i], &second[i]);
    if (half < upper)
        bits[half] = gb_word_at(seed, count, half);
}

void gb_gumbel_noise(const uint32_t *bits, uint32_t count, float *noise) {
    const uint32_t *restrict in = bits;
    float *restrict out = noise;
    for (uint32_t i = 0; i < count; i++)
        out[i] = gb_gumbel(in[i]);
}
