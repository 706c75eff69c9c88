/* SPDX-License-Identifier: Apache-2.0
 *
 * The last steps of sampling on the few candidates that are left of a row, in one block: top-k, top-p and
 * min-p, and the draw.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_CANDIDATES_CUH
#define GUMBEL_RUN_CUDA_DEVICE_CANDIDATES_CUH

#include "run/cuda/device/sampling.cuh"

namespace gb_cuda {

enum { MOST_CANDIDATES = 1024, FEW_CANDIDATES = ROW_THREADS / 2 };

/* In shared memory. */
struct candidate_list {
    uint32_t count; /* may exceed MOST_CANDIDATES: then not all are listed */
    float s[MOST_CANDIDATES];
    uint32_t index[MOST_CANDIDATES];
    weight_sum mass[FEW_CANDIDATES], score[FEW_CANDIDATES];
    weight_sum of_warps[ROW_WARPS];
    select_memory select;
};

__device__ inline void append_candidate(candidate_list *list, float s, uint32_t index) {
    const uint32_t at = atomicAdd(&list->count, 1u);
    if (at < MOST_CANDIDATES) {
        list->s[at] = s;
        list->index[at] = index;
    }
}

/* The largest s of those listed, in every thread; -inf where there is none. To be called after a barrier. */
__device__ inline float largest_listed(const candidate_list *list) {
    uint32_t key = key_of(gb_negative_infinity());
#pragma unroll 1
    for (unsigned i = threadIdx.x % WARP; i < list->count; i += WARP) {
        const uint32_t own = key_of(list->s[i]);
        key = own > key ? own : key;
    }
    return value_of(largest_in_warp(key));
}

/* How candidates are cut. Those listed are all that lie above some s; top-p's limit is found from them, or
 * was found before them. */
struct cut_rule {
    uint32_t size; /* of the row */
    float max_s;
    uint32_t top_k; /* 0: all */
    float top_p;    /* 1: all */
    bool has_limit;
    weight_sum limit; /* if so: what may be above a kept one, of the listed */
};

/* Each candidate is compared with all others, by a few threads. One half of the block finds masses while the
 * other finds scores. */
__device__ inline weight_sum draw_few(candidate_list *list, const cut_rule &rule, const row_settings &r) {
    const unsigned t = threadIdx.x, count = list->count, drawing = t - FEW_CANDIDATES;
    if (t < count)
        list->mass[t] = gb_mass(list->s[t], rule.max_s);
    if (drawing < count)
        list->score[drawing] = score_of(r.seed, rule.size, list->s[drawing], list->index[drawing]);
    __syncthreads();
    const unsigned lanes = count <= ROW_THREADS / 4 ? 4 : 2, own = t / lanes, lane = t % lanes;
    const float s = own < count ? list->s[own] : 0.0f;
    uint32_t greater = 0;
    weight_sum above = 0;
#pragma unroll 4
    for (unsigned i = lane; i < count; i += lanes) {
        const bool is_greater = list->s[i] > s;
        greater += is_greater ? 1u : 0u;
        above += is_greater ? list->mass[i] : 0;
    }
    for (unsigned distance = 1; distance < 4; distance *= 2) {
        const uint32_t more = __shfl_xor_sync(0xffffffffu, greater, (int)distance);
        const weight_sum more_above = __shfl_xor_sync(0xffffffffu, above, (int)distance);
        greater += distance < lanes ? more : 0;
        above += distance < lanes ? more_above : 0;
    }
    bool is_kept = own < count && (rule.top_k == 0 || greater < rule.top_k);
    if (rule.top_p < 1.0f) {
        weight_sum limit = rule.limit;
        if (!rule.has_limit)
            limit = gb_mass_limit(block_total(is_kept && lane == 0 ? list->mass[own] : 0, list->of_warps),
                                  rule.top_p);
        is_kept = is_kept && above <= limit;
    }
    is_kept = is_kept && list->mass[own] >= r.least_mass;
    return block_best(is_kept ? list->score[own] : 0, list->of_warps);
}

/* Thresholds are found by the floats' bits. */
static __device__ __noinline__ weight_sum draw_several(candidate_list *list, cut_rule rule, row_settings r) {
    const unsigned count = list->count;
    float least = gb_negative_infinity();
    if (rule.top_k != 0 && rule.top_k < count)
        least =
            value_of(select_in_block(count, rule.top_k - 1, &list->select, [&](unsigned i, uint32_t *key) {
                *key = key_of(list->s[i]);
                return (weight_sum)1;
            }));
    if (rule.top_p < 1.0f) {
        const auto mass = [&](unsigned i, uint32_t *key) {
            *key = key_of(list->s[i]);
            return list->s[i] >= least ? (weight_sum)gb_mass(list->s[i], rule.max_s) : (weight_sum)0;
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
        const float s = list->s[i];
        if (s < least || gb_mass(s, rule.max_s) < r.least_mass)
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
