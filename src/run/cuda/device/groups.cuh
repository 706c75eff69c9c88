/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of logits by groups of 128, with the largest of each: what is far below the top is passed over by its
 * group's largest, without being read.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_GROUPS_CUH
#define GUMBEL_RUN_CUDA_DEVICE_GROUPS_CUH

#include "run/cuda/device/select.cuh"

namespace gb_cuda {

enum { ROW_THREADS = 512, ROW_WARPS = ROW_THREADS / WARP };
enum { GROUP = 128, GROUP_EACH = GROUP / WARP, WARP_GROUPS = 2, LOGITS_EACH = GROUP_EACH * WARP_GROUPS };
enum { BLOCK_LOGITS = (int)ROW_THREADS * (int)LOGITS_EACH };
enum { MOST_GROUPS = 2048, NEARNESS_BITS = 10, NEARNESS_BINS = 1024, NEAREST = 0xfffff };

/* A key like key_of's; that of a NaN is larger than all. */
__device__ inline uint32_t logit_key(float x) {
    return x == x ? key_of(x) : 0xffffffffu;
}

__device__ inline uint32_t largest_in_warp(uint32_t value) {
#if defined(__CUDA_ARCH__)
    return __reduce_max_sync(0xffffffffu, value);
#else
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = other > value ? other : value;
    }
    return value;
#endif
}

/* Where a thread's logit j of a block's lies in the row. */
__device__ inline uint32_t logit_index(unsigned block, int j) {
    return block * BLOCK_LOGITS + threadIdx.x / WARP * (LOGITS_EACH * WARP) + (unsigned)j * WARP +
           threadIdx.x % WARP;
}

/* Writes the largest keys of a block's groups, and the block's best logit, packed, a NaN above all. */
__device__ inline void write_maxima(const float value[LOGITS_EACH], uint32_t size, uint32_t groups,
                                    uint32_t *maxima, weight_sum *best_of_block) {
    __shared__ weight_sum of_warps[ROW_WARPS];
    const uint32_t first = logit_index(blockIdx.x, 0), lane = threadIdx.x % WARP;
    uint32_t key[LOGITS_EACH], largest = 0, at = 0;
#pragma unroll
    for (int j = 0; j < LOGITS_EACH; j++)
        key[j] = first + (unsigned)j * WARP < size ? logit_key(value[j]) : 0;
#pragma unroll
    for (int g = 0; g < WARP_GROUPS; g++) {
        uint32_t of_group = 0;
#pragma unroll
        for (int j = g * GROUP_EACH; j < (g + 1) * GROUP_EACH; j++)
            of_group = key[j] > of_group ? key[j] : of_group;
        of_group = largest_in_warp(of_group);
        if (lane == 0 && first / GROUP + (unsigned)g < groups)
            maxima[first / GROUP + (unsigned)g] = of_group;
        largest = of_group > largest ? of_group : largest;
    }
#pragma unroll
    for (int j = LOGITS_EACH - 1; j >= 0; j--) /* the lowest index that has it */
        at = key[j] == largest ? first + (unsigned)j * WARP : at;
    const bool has_it = at != 0 || (key[0] == largest && first == 0);
    const weight_sum best = block_best(has_it ? (weight_sum)largest << 32 | (uint32_t)~at : 0, of_warps);
    if (threadIdx.x == 0)
        *best_of_block = best;
}

/* How near s is to the largest, NEAREST being nearest, by the bits of the distance: 2^15 steps for each power
 * of two from 2^-14 to 2^18. A larger s is never less near. */
__device__ inline unsigned nearness(float s, float max) {
    const uint32_t first = (127u - 14) << 15, bits = gb_float_bits(max - s) >> 8;
    const uint32_t distance = bits > first ? bits - first : 0;
    return s == max ? NEAREST : distance < NEAREST ? NEAREST - distance : 0;
}

/* Groups that are to be read, in shared memory. */
struct group_list {
    uint32_t keys[MOST_GROUPS]; /* the largest of each group; of more groups, only these are here */
    uint32_t bins[NEARNESS_BINS];
    finding_memory finding;
    uint32_t count; /* may exceed MOST_GROUPS: then not all are listed */
    uint16_t groups[MOST_GROUPS];
};

/* To be called before a barrier. */
__device__ inline void load_keys(const uint32_t *maxima, uint32_t groups, group_list *list) {
    for (uint32_t g = threadIdx.x; g < groups && g < MOST_GROUPS; g += ROW_THREADS)
        list->keys[g] = maxima[g];
}

/* Visits the groups that have a candidate: visit(group, the largest s). */
template <typename Visit>
__device__ void visit_maxima(const uint32_t *maxima, uint32_t groups, float temperature,
                             const group_list *list, Visit visit) {
#pragma unroll 1
    for (uint32_t g = threadIdx.x; g < groups; g += ROW_THREADS) {
        const float x = value_of(g < MOST_GROUPS ? list->keys[g] : maxima[g]);
        if (x > gb_negative_infinity())
            visit(g, gb_scale(x, temperature));
    }
}

/* A nearness that at least `wanted` of a row's values have, or more; 0 where that is all that is known. Keys
 * are loaded. Needs all threads. */
__device__ inline unsigned nearness_of_largest(const uint32_t *maxima, uint32_t groups, uint32_t wanted,
                                               float temperature, float max_s, group_list *list) {
    enum { NEAR_ENOUGH = 32 }; /* groups in a bin that are not worth telling apart */
    weight_sum above = 0;
    unsigned bound = 0;
#pragma unroll 1
    for (unsigned shift = NEARNESS_BITS;; shift = 0) {
        for (unsigned i = threadIdx.x; i < NEARNESS_BINS; i += ROW_THREADS)
            list->bins[i] = 0;
        __syncthreads();
        visit_maxima(maxima, groups, temperature, list, [&](uint32_t, float s) {
            const unsigned near = nearness(s, max_s);
            if (shift != 0 || near >> NEARNESS_BITS == bound >> NEARNESS_BITS)
                atomicAdd(&list->bins[near >> shift & (NEARNESS_BINS - 1)], 1u);
        });
        __syncthreads();
        const found_bin found = find_bin<NEARNESS_BINS>(
            above, wanted - 1, &list->finding, [&](unsigned bin) { return (weight_sum)list->bins[bin]; });
        if (found.bin < 0)
            return 0;
        above = found.above;
        bound |= (unsigned)found.bin << shift;
        if (shift == 0 || list->bins[found.bin] <= NEAR_ENOUGH)
            return bound;
        __syncthreads();
    }
}

/* Lists the groups that have a candidate and whose largest s is wanted. Needs all threads. */
template <typename Wanted>
__device__ void list_groups(const uint32_t *maxima, uint32_t groups, float temperature, group_list *list,
                            Wanted is_wanted) {
    if (threadIdx.x == 0)
        list->count = 0;
    __syncthreads();
    visit_maxima(maxima, groups, temperature, list, [&](uint32_t g, float s) {
        if (!is_wanted(s))
            return;
        const uint32_t at = atomicAdd(&list->count, 1u);
        if (at < MOST_GROUPS)
            list->groups[at] = (uint16_t)g; /* a row has fewer than 2^23 logits */
    });
    __syncthreads();
}

/* Visits the candidates of the listed groups: visit(index, s). A warp reads a group while it goes through the
 * one before. */
template <typename Visit>
__device__ void visit_groups(const group_list *list, const float *row, uint32_t size, float temperature,
                             Visit visit) {
    const unsigned lane = threadIdx.x % WARP, count = list->count;
    float x[GROUP_EACH], next[GROUP_EACH];
    uint32_t first = 0, next_first = 0;
#pragma unroll 1
    for (unsigned at = threadIdx.x / WARP; at < count + ROW_WARPS; at += ROW_WARPS) {
        next_first = at < count ? list->groups[at] * GROUP + lane : size;
#pragma unroll
        for (int j = 0; j < GROUP_EACH; j++) {
            const uint32_t i = next_first + (unsigned)j * WARP;
            next[j] = i < size ? row[i] : gb_negative_infinity();
        }
#pragma unroll
        for (int j = 0; at >= ROW_WARPS && j < GROUP_EACH; j++)
            if (x[j] > gb_negative_infinity())
                visit(first + (unsigned)j * WARP, gb_scale(x[j], temperature));
        first = next_first;
#pragma unroll
        for (int j = 0; j < GROUP_EACH; j++)
            x[j] = next[j];
    }
}

} // namespace gb_cuda

#endif
