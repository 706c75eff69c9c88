/* SPDX-License-Identifier: Apache-2.0
 *
 * The last steps of sampling on the few candidates that are left of a row, in one block: top-k, top-p and
 * min-p, and the draw.
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_CANDIDATES_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_CANDIDATES_CUH

#include "backends/cuda/sampler/sampling.cuh"

namespace gb_cuda {

enum { MOST_CANDIDATES = 2048, FEW_CANDIDATES = ROW_THREADS / 2 };

/* Of a few candidates: what each is compared by. A mass is high * 2^20 + low, of which many add up in a word.
 */
struct compared_candidates {
    alignas(16) float s[FEW_CANDIDATES];
    alignas(16) uint32_t high[FEW_CANDIDATES];
    alignas(16) uint32_t low[FEW_CANDIDATES];
    weight_sum score[FEW_CANDIDATES];
    uint32_t high_of_warps[ROW_WARPS], low_of_warps[ROW_WARPS];
};

/* In shared memory. */
struct candidate_list {
    uint32_t count;               /* may exceed MOST_CANDIDATES: then not all are listed */
    float value[MOST_CANDIDATES]; /* logits, or s: see cut_rule */
    uint32_t index[MOST_CANDIDATES];
    weight_sum of_warps[ROW_WARPS];
    union {
        compared_candidates few;
        select_memory select;
    };

    __device__ void append(float x, uint32_t i) {
        const uint32_t at = atomicAdd(&count, 1u);
        if (at < MOST_CANDIDATES) {
            value[at] = x;
            index[at] = i;
        }
    }
};

/* The largest value listed, in every thread; -inf where there is none. At most MOST_CANDIDATES; to be called
 * after a barrier. */
__device__ inline float largest_listed(const candidate_list *list) {
    uint32_t key = key_of(gb_negative_infinity());
#pragma unroll 1
    for (unsigned i = threadIdx.x % WARP; i < list->count; i += WARP) {
        const uint32_t own = key_of(list->value[i]);
        key = own > key ? own : key;
    }
    return value_of(largest_in_warp(key));
}

/* How candidates are cut. Those listed are all that lie above some s; top-p's limit is found from them, or
 * was found before them. */
struct cut_rule {
    uint32_t size;     /* of the row */
    float temperature; /* values are s where it is 1 */
    float max_s;
    uint32_t top_k; /* 0: all */
    float top_p;    /* 1: all */
    bool has_limit;
    weight_sum limit; /* if so: what may be above a kept one, of the listed */
};

/* The sum over a block of masses in two parts, of which at most FEW_CANDIDATES are not 0. */
__device__ inline weight_sum total_of_few(uint32_t high, uint32_t low, compared_candidates *few) {
    const unsigned lane = threadIdx.x % WARP;
    high = sum_in_warp(high);
    low = sum_in_warp(low);
    if (lane == 0) {
        few->high_of_warps[threadIdx.x / WARP] = high;
        few->low_of_warps[threadIdx.x / WARP] = low;
    }
    __syncthreads();
    high = sum_in_warp(lane < ROW_WARPS ? few->high_of_warps[lane] : 0);
    low = sum_in_warp(lane < ROW_WARPS ? few->low_of_warps[lane] : 0);
    return ((weight_sum)high << 20) + low;
}

/* Each candidate is compared with all others, by a few threads. One half of the block finds masses while the
 * other finds scores. */
__device__ inline weight_sum draw_few(candidate_list *list, const cut_rule &rule, const row_settings &r) {
    const unsigned t = threadIdx.x, count = list->count, padded = (count + 15) / 16 * 16;
    compared_candidates *few = &list->few;
    if (t < FEW_CANDIDATES && t < padded) { /* what pads is above nothing */
        few->s[t] = t < count ? gb_scale(list->value[t], rule.temperature) : gb_negative_infinity();
        gb_mass_parts(few->s[t], rule.max_s, &few->high[t], &few->low[t]);
    }
    const unsigned drawing = t - FEW_CANDIDATES;
    if (drawing < count)
        few->score[drawing] = score_of(r.seed, rule.size, gb_scale(list->value[drawing], rule.temperature),
                                       list->index[drawing]);
    __syncthreads();
    const unsigned lanes = count <= ROW_THREADS / 4 ? 4 : 2, own = t / lanes, lane = t % lanes;
    const float s = own < count ? few->s[own] : gb_negative_infinity();
    uint32_t greater = 0, high = 0, low = 0;
#pragma unroll 1
    for (unsigned i = lane * 4; i < padded; i += lanes * 4) {
        const float4 others = *reinterpret_cast<const float4 *>(few->s + i);
        const uint4 highs = *reinterpret_cast<const uint4 *>(few->high + i);
        const uint4 lows = *reinterpret_cast<const uint4 *>(few->low + i);
        greater += (others.x > s) + (others.y > s) + (others.z > s) + (others.w > s);
        high += (others.x > s ? highs.x : 0) + (others.y > s ? highs.y : 0) + (others.z > s ? highs.z : 0) +
                (others.w > s ? highs.w : 0);
        low += (others.x > s ? lows.x : 0) + (others.y > s ? lows.y : 0) + (others.z > s ? lows.z : 0) +
               (others.w > s ? lows.w : 0);
    }
    for (unsigned distance = 1; distance < 4; distance *= 2) {
        const uint32_t more[3] = {__shfl_xor_sync(0xffffffffu, greater, (int)distance),
                                  __shfl_xor_sync(0xffffffffu, high, (int)distance),
                                  __shfl_xor_sync(0xffffffffu, low, (int)distance)};
        greater += distance < lanes ? more[0] : 0;
        high += distance < lanes ? more[1] : 0;
        low += distance < lanes ? more[2] : 0;
    }
    const uint32_t own_high = own < count ? few->high[own] : 0, own_low = own < count ? few->low[own] : 0;
    bool is_kept = own < count && (rule.top_k == 0 || greater < rule.top_k);
    if (rule.top_p < 1.0f) {
        const bool is_counted = is_kept && lane == 0;
        const weight_sum limit =
            rule.has_limit
                ? rule.limit
                : gb_mass_limit(total_of_few(is_counted ? own_high : 0, is_counted ? own_low : 0, few),
                                rule.top_p);
        is_kept = is_kept && ((weight_sum)high << 20) + low <= limit;
    }
    is_kept = is_kept && gb_is_above(r.floor, s, rule.max_s, ((weight_sum)own_high << 20) + own_low);
    return block_best(is_kept ? few->score[own] : 0, list->of_warps);
}

/* Thresholds are found by the floats' bits. Each thread goes through its own candidates, again and again. */
static __device__ __noinline__ weight_sum draw_several(candidate_list *list, cut_rule rule, row_settings r) {
    const unsigned count = list->count;
    float least = gb_negative_infinity();
    for (unsigned i = threadIdx.x; i < count; i += ROW_THREADS)
        list->value[i] = gb_scale(list->value[i], rule.temperature);
    if (rule.top_k != 0 && rule.top_k < count)
        least =
            value_of(select_in_block(count, rule.top_k - 1, &list->select, [&](unsigned i, uint32_t *key) {
                *key = key_of(list->value[i]);
                return (weight_sum)1;
            }));
    if (rule.top_p < 1.0f) {
        const auto mass = [&](unsigned i, uint32_t *key) {
            *key = key_of(list->value[i]);
            return list->value[i] >= least ? (weight_sum)gb_mass(list->value[i], rule.max_s) : (weight_sum)0;
        };
        weight_sum limit = rule.limit;
        if (!rule.has_limit) {
            weight_sum own = 0;
            uint32_t key;
            for (unsigned i = threadIdx.x; i < count; i += ROW_THREADS)
                own += mass(i, &key);
            limit = gb_mass_limit(block_total(own, list->of_warps), rule.top_p);
        }
        const uint32_t threshold = select_in_block(count, limit, &list->select, mass);
        least = threshold != 0 ? value_of(threshold) : least;
    }
    weight_sum best = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < count; i += ROW_THREADS) {
        const float s = list->value[i];
        if (s < least || !gb_is_above(r.floor, s, rule.max_s, gb_mass(s, rule.max_s)))
            continue;
        const weight_sum score = score_of(r.seed, rule.size, s, list->index[i]);
        best = score > best ? score : best;
    }
    return block_best(best, list->of_warps);
}

/* The best score of the candidates that are kept, in every thread; 0: none. At most MOST_CANDIDATES. Needs
 * all threads. */
__device__ inline weight_sum draw_candidates(candidate_list *list, const cut_rule &rule,
                                             const row_settings &r) {
    __syncthreads();
    return list->count <= FEW_CANDIDATES ? draw_few(list, rule, r) : draw_several(list, rule, r);
}

} // namespace gb_cuda

#endif
