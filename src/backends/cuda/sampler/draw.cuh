/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing from many logits: blocks share a row by groups, each with its partner in the row's upper half,
 * whose random words come from the same hashes.
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_DRAW_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_DRAW_CUH

#include "backends/cuda/sampler/sampling.cuh"

namespace gb_cuda {

/* The bin of an s by its distance from the largest, 1/64 wide; a larger s is never in a lower bin. What is
 * further away has no mass. */
__device__ inline int mass_bin(float s, float max) {
    const float distance = max - s, furthest = (float)(MASS_BINS / 64) - 1.0f;
    if (s == max)
        return MASS_BINS - 1;
    return distance < furthest ? MASS_BINS - 1 - (int)(distance * 64.0f) : 0;
}

/* What is drawn from a row. */
struct drawing {
    const float *row;
    const uint32_t *maxima;
    uint32_t size, groups;
    bool is_even; /* the candidates are the logits of +inf, with s = 0 */
    float temperature, max_s;
    float least; /* smaller s are out */
    int bin;     /* top-p alone: the bin with the threshold; -1: none */
    uint64_t seed;
    gb_floor floor;
};

__device__ inline drawing drawing_of(const sampling &a, size_t b, const row_settings &r, float max_s,
                                     float least) {
    drawing d;
    d.row = row_of(a, b, r);
    d.maxima = maxima_of(a, b, r).keys;
    d.size = a.size;
    d.groups = a.groups;
    d.is_even = false;
    d.temperature = r.temperature;
    d.max_s = max_s;
    d.least = least;
    d.bin = -1;
    d.seed = r.seed;
    d.floor = r.floor;
    return d;
}

/* Whether a logit can be the token; *s is its scaled value. */
__device__ inline bool is_in(const drawing &d, float x, float *s) {
    *s = d.is_even ? 0.0f : gb_scale(x, d.temperature);
    if (d.is_even)
        return x == -gb_negative_infinity();
    return x > gb_negative_infinity() && *s >= d.least && (d.bin < 0 || mass_bin(*s, d.max_s) >= d.bin);
}

/* Whether a word has too little noise to lift s to a score: g >= need takes -log u <= exp(-need), and
 * -log u is at least 1 - u. Clear of the errors of all functions involved. */
__device__ inline bool falls_short(uint32_t word, float s, float score) {
    const float need = score - s - 1e-3f - (fabsf(score) + fabsf(s)) * 0x1p-20f;
    const float missing = (float)~word * 0x1p-32f;
    return need > 0.0f && missing > gb_exp(-need) * 1.0001f + 0x1p-30f;
}

/* Lets a logit that is in compete. */
__device__ inline void compete(const drawing &d, float s, uint32_t index, uint32_t word, weight_sum *best) {
    if (falls_short(word, s, best_value(*best)) || !gb_is_above(d.floor, s, d.max_s, gb_mass(s, d.max_s)))
        return;
    const weight_sum score = score_with(s, index, word);
    *best = score > *best ? score : *best;
}

/* Visits this block's part of the groups that can have the token, a warp a group and its partner at a time:
 * visit(exists, index, x, word), by all lanes. */
template <typename Visit>
__device__ void visit_part(const drawing &d, Visit visit) {
    const uint32_t half = gb_word_half(d.size), upper = gb_word_upper(d.size);
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t pairs = (upper + GROUP - 1) / GROUP, last = d.groups - 1;
#pragma unroll 1
    for (uint32_t pair = blockIdx.x * ROW_WARPS + warp; pair < pairs; pair += gridDim.x * ROW_WARPS) {
        const uint32_t first = pair * GROUP, partner = (upper + first) / GROUP;
        const uint32_t keys[3] = {d.maxima[pair], d.maxima[partner < last ? partner : last],
                                  d.maxima[partner + 1 < last ? partner + 1 : last]};
        const uint32_t largest = keys[0] > keys[1] ? keys[0] : keys[1];
        float s;
        if (!is_in(d, value_of(largest > keys[2] ? largest : keys[2]), &s))
            continue;
#pragma unroll 1
        for (int j = 0; j < GROUP_EACH; j++) {
            const uint32_t i = first + (unsigned)j * WARP + lane;
            const float x0 = i < upper ? d.row[i] : 0.0f, x1 = i < half ? d.row[upper + i] : 0.0f;
            uint32_t word0, word1;
            gb_threefry(d.seed, i, i < half ? upper + i : 0, &word0, &word1);
            visit(i < upper, i, x0, word0);
            visit(i < half, upper + i, x1, word1);
        }
    }
}

} // namespace gb_cuda

#endif
