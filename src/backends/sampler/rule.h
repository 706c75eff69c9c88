/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler's contract, one value at a time: what the nodes of the chain and the fused function compute
 * for each logit, so that both get the same bits. docs/sampling.md explains the definitions.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_RULE_H
#define GUMBEL_BACKENDS_SAMPLER_RULE_H

#include "backends/math.h"

#include <stdint.h>

/* No noise is larger: u is at most 1 - 2^-24, and gb_gumbel(0xffffffff) = 16.6355. */
#define GB_NOISE_BOUND 16.64f

/* Everything this far below the largest value has mass 0: e^-32 < 2^-40. */
#define GB_MASSLESS_DISTANCE 32.0f

GB_MATH float gb_negative_infinity(void) {
    return gb_float_from_bits(0xff800000);
}

/* s = x / temperature, with +0 in place of -0. */
GB_MATH float gb_scale(float x, float temperature) {
    return x / temperature + 0.0f;
}

/* w = e^(s - max), s <= max, in units of 2^-40, rounded down: at most 2^40. 1 where s = max, even when both
 * are infinite; 0 where s is a NaN. In two parts of 20 bits, since these convert in any vector unit. */
GB_MATH void gb_mass_parts(float s, float max, uint32_t *high, uint32_t *low) {
    float distance = s - max;
    distance = distance > -GB_MASSLESS_DISTANCE ? distance : -GB_MASSLESS_DISTANCE;
    const uint32_t below = 0u - (uint32_t)(s != max);
    distance = gb_float_from_bits(gb_float_bits(distance) & below);
    const float scaled = gb_exp_in_range(distance) * 0x1p+20f;
    const int32_t whole = (int32_t)scaled;
    *high = (uint32_t)whole;
    *low = (uint32_t)(int32_t)((scaled - (float)whole) * 0x1p+20f);
}

GB_MATH uint64_t gb_mass(float s, float max) {
    uint32_t high, low;
    gb_mass_parts(s, max, &high, &low);
    return ((uint64_t)high << 20) + low;
}

/* floor(total * p), p = floor(top_p * 2^32) / 2^32; less than total where total > 0 and top_p < 1. */
GB_MATH uint64_t gb_mass_limit(uint64_t total, float top_p) {
    const uint64_t p = (uint64_t)((double)top_p * 0x1p+32);
    return (total >> 32) * p + (((total & 0xffffffff) * p) >> 32);
}

/* The least mass that min-p keeps: floor(min_p * 2^40). */
GB_MATH uint64_t gb_least_mass(float min_p) {
    return (uint64_t)((double)min_p * 0x1p+40);
}

/* Every s below it has less than the least mass: max + log(least_mass), clear of all roundings. */
GB_MATH float gb_mass_bound(float max, uint64_t least_mass) {
    const float infinity = gb_float_from_bits(0x7f800000), size = max < 0.0f ? -max : max;
    if (least_mass == 0 || !(size < infinity))
        return -infinity;
    return (max + gb_log((float)least_mass * 0x1p-40f)) - (size * 0x1p-20f + 1e-2f);
}

/* No s below it reaches a score, whatever its noise; clear of all roundings. */
GB_MATH float gb_reach(float score) {
    const float size = score < 0.0f ? -score : score;
    if (!(size < gb_float_from_bits(0x7f800000)))
        return score;
    return score - GB_NOISE_BOUND - (size + GB_NOISE_BOUND) * 0x1p-21f;
}

/* A logit such that smaller ones have a smaller s; at most the largest float. Clear of the roundings of the
 * division (2^-24 of s, or 2^-150) and of the conversion. */
GB_MATH float gb_logit_bound(float s, float temperature) {
    const float largest = gb_float_from_bits(0x7f7fffff);
    if (!(s > -largest))
        return gb_negative_infinity();
    double bound = (double)(s < largest ? s : largest) * (double)temperature;
    bound -= (bound < 0 ? -bound : bound) * 0x1p-21 + 1e-40;
    return bound < (double)largest ? (float)bound : largest;
}

/* A logit with its bias. -inf bans, whatever the logit; only a NaN stays one. */
GB_MATH float gb_biased(float x, float bias) {
    const float infinity = gb_float_from_bits(0x7f800000);
    return x == x && bias == -infinity ? bias : x + bias;
}

/* A logit under the repetition penalty (Keskar et al., CTRL, 2019, in the form that also lowers negative
 * logits). */
GB_MATH float gb_repetition_penalized(float x, float repetition) {
    return x < 0.0f ? x * repetition : x / repetition;
}

/* A logit whose token occurred count times, count > 0, under the frequency and the presence penalty. */
GB_MATH float gb_occurrence_penalized(float x, float count, float frequency, float presence) {
    return (x - frequency * count) - presence;
}

/* Two words of random bits: threefry2x32 with 20 rounds. (Salmon et al., Parallel random numbers: as easy as
 * 1, 2, 3, 2011) */
GB_MATH void gb_threefry(uint64_t seed, uint32_t counter0, uint32_t counter1, uint32_t *word0,
                         uint32_t *word1) {
    const uint32_t key0 = (uint32_t)(seed >> 32), key1 = (uint32_t)seed;
    const uint32_t key2 = key0 ^ key1 ^ 0x1bd11bda;
    uint32_t a = counter0 + key0, b = counter1 + key1;

#define GB_MIX(rotation) (a += b, b = (b << (rotation)) | (b >> (32 - (rotation))), b ^= a)
#define GB_FOUR_ROUNDS_A (GB_MIX(13), GB_MIX(15), GB_MIX(26), GB_MIX(6))
#define GB_FOUR_ROUNDS_B (GB_MIX(17), GB_MIX(29), GB_MIX(16), GB_MIX(24))
    GB_FOUR_ROUNDS_A, a += key1, b += key2 + 1;
    GB_FOUR_ROUNDS_B, a += key2, b += key0 + 2;
    GB_FOUR_ROUNDS_A, a += key0, b += key1 + 3;
    GB_FOUR_ROUNDS_B, a += key1, b += key2 + 4;
    GB_FOUR_ROUNDS_A, a += key2, b += key0 + 5;
#undef GB_FOUR_ROUNDS_B
#undef GB_FOUR_ROUNDS_A
#undef GB_MIX
    *word0 = a;
    *word1 = b;
}

/* How the words of a row of count logits lie, as in MLX: with half = count / 2 rounded down and upper = half
 * rounded up, the hash of (i, upper + i) gives words i and upper + i. An odd row's middle word is the first
 * of the hash of (half, 0). */
GB_MATH uint32_t gb_word_half(uint32_t count) {
    return count / 2;
}
GB_MATH uint32_t gb_word_upper(uint32_t count) {
    return count - count / 2;
}

/* The random word of one index of a row. */
GB_MATH uint32_t gb_word_at(uint64_t seed, uint32_t count, uint32_t index) {
    const uint32_t half = gb_word_half(count), upper = gb_word_upper(count);
    uint32_t word0, word1;
    if (index >= upper) {
        gb_threefry(seed, index - upper, index, &word0, &word1);
        return word1;
    }
    gb_threefry(seed, index, index < half ? upper + index : 0, &word0, &word1);
    return word0;
}

/* u in [0, 1): 24 significant bits, so that the largest is 1 - 2^-24, never 1. */
GB_MATH float gb_uniform(uint32_t bits) {
    const float u = (float)bits * 0x1p-32f;
    return u < 0x1.fffffep-1f ? u : 0x1.fffffep-1f;
}

/* g = -log(-log u): -inf for u = 0, at most GB_NOISE_BOUND. (Gumbel, 1954) */
GB_MATH float gb_gumbel(uint32_t bits) {
    return -gb_log(-gb_log(gb_uniform(bits)));
}

#endif
