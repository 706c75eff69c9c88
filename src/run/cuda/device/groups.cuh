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
enum { GROUP = 128, GROUP_EACH = 4, WARP_GROUPS = 2, LOGITS_EACH = GROUP_EACH * WARP_GROUPS };
enum { BLOCK_LOGITS = (int)ROW_THREADS * (int)LOGITS_EACH };
enum { MOST_GROUPS = 2048, FEW_GROUPS = 512 };

/* A key like key_of's; that of a NaN is larger than all. */
__device__ inline uint32_t logit_key(float x) {
    return x == x ? key_of(x) : 0xffffffffu;
}

/* Where a thread's logit j of a block's lies in the row: a group is four logits of each lane. */
__device__ inline uint32_t logit_index(unsigned block, int j) {
    return block * BLOCK_LOGITS + threadIdx.x / WARP * (LOGITS_EACH * WARP) +
           (unsigned)(j / GROUP_EACH) * GROUP + threadIdx.x % WARP * GROUP_EACH + (unsigned)(j % GROUP_EACH);
}

/* Reads logits i .. i + GROUP_EACH - 1 of a row that begins at a multiple of size; those past its end are
 * -inf. */
__device__ inline void load_logits(const float *row, uint32_t size, uint32_t i, float *x) {
    if (size % GROUP_EACH == 0 && i < size) {
        const float4 four = *reinterpret_cast<const float4 *>(row + i);
        x[0] = four.x;
        x[1] = four.y;
        x[2] = four.z;
        x[3] = four.w;
        return;
    }
#pragma unroll
    for (int j = 0; j < GROUP_EACH; j++)
        x[j] = i + (unsigned)j < size ? row[i + (unsigned)j] : gb_negative_infinity();
}

/* Reads a block's logits. */
__device__ inline void load_block(const float *row, uint32_t size, float value[LOGITS_EACH]) {
#pragma unroll
    for (int g = 0; g < WARP_GROUPS; g++)
        load_logits(row, size, logit_index(blockIdx.x, g * GROUP_EACH), value + g * GROUP_EACH);
}

/* Writes the largest keys of a block's groups, and the block's best logit, packed, a NaN above all. */
__device__ inline void write_maxima(const float value[LOGITS_EACH], uint32_t size, uint32_t groups,
                                    uint32_t *maxima, weight_sum *best_of_block) {
    __shared__ weight_sum of_warps[ROW_WARPS];
    const unsigned lane = threadIdx.x % WARP;
    const uint32_t first_group = logit_index(blockIdx.x, 0) / GROUP;
    uint32_t key[LOGITS_EACH], largest = 0, at = 0;
    bool has_it = false;
#pragma unroll
    for (int g = 0; g < WARP_GROUPS; g++) {
        uint32_t of_group = 0;
#pragma unroll
        for (int j = g * GROUP_EACH; j < (g + 1) * GROUP_EACH; j++) {
            key[j] = logit_index(blockIdx.x, j) < size ? logit_key(value[j]) : 0;
            of_group = key[j] > of_group ? key[j] : of_group;
        }
        of_group = largest_in_warp(of_group);
        if (lane == 0 && first_group + (unsigned)g < groups)
            maxima[first_group + (unsigned)g] = of_group;
        largest = of_group > largest ? of_group : largest;
    }
#pragma unroll
    for (int j = LOGITS_EACH - 1; j >= 0; j--) { /* the lowest index that has it */
        at = key[j] == largest ? logit_index(blockIdx.x, j) : at;
        has_it |= key[j] == largest;
    }
    const weight_sum best = block_best(has_it ? (weight_sum)largest << 32 | (uint32_t)~at : 0, of_warps);
    if (threadIdx.x == 0)
        *best_of_block = best;
}

/* Groups that are to be read, in shared memory. */
struct group_list {
    uint32_t keys[MOST_GROUPS]; /* the largest of each group; of more groups, only these are here */
    uint32_t count;             /* may exceed MOST_GROUPS: then not all are listed */
    uint32_t bound;
    uint16_t groups[MOST_GROUPS];
    uint32_t largest[FEW_GROUPS]; /* of the first ones listed: keys */
};

/* To be called before a barrier. */
__device__ inline void load_keys(const uint32_t *maxima, uint32_t groups, group_list *list) {
    enum { EACH = MOST_GROUPS / ROW_THREADS };
    uint32_t key[EACH];
#pragma unroll
    for (unsigned j = 0; j < EACH; j++)
        key[j] = threadIdx.x + j * ROW_THREADS < groups ? maxima[threadIdx.x + j * ROW_THREADS] : 0;
#pragma unroll
    for (unsigned j = 0; j < EACH; j++)
        list->keys[threadIdx.x + j * ROW_THREADS] = key[j];
    if (threadIdx.x == 0) {
        list->count = 0;
        list->bound = 0xffffffffu;
    }
}

/* A key that at least `wanted` groups reach, 0 where not so many are known to: each warp finds that of its
 * share of them. Needs all threads, and a barrier before. */
__device__ inline uint32_t bound_by_warps(uint32_t wanted, group_list *list) {
    enum { EACH = MOST_GROUPS / ROW_THREADS };
    uint32_t key[EACH], largest = 0;
#pragma unroll
    for (unsigned j = 0; j < EACH; j++)
        key[j] = list->keys[threadIdx.x + j * ROW_THREADS];
#pragma unroll 1
    for (uint32_t found = 0; found < wanted; found += ROW_WARPS) {
        uint32_t own = 0;
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            own = key[j] > own ? key[j] : own;
        largest = largest_in_warp(own);
        bool is_out = largest == own;
        const unsigned votes = __ballot_sync(0xffffffffu, is_out);
        is_out = is_out && (votes & ((1u << threadIdx.x % WARP) - 1)) == 0; /* one of equals */
#pragma unroll
        for (unsigned j = 0; j < EACH; j++)
            if (is_out && key[j] == own) {
                key[j] = 0;
                is_out = false;
            }
    }
    if (threadIdx.x % WARP == 0)
        atomicMin(&list->bound, largest);
    __syncthreads();
    return list->bound;
}

/* The s of a key, -inf where that is of no candidate. */
__device__ inline float scaled_key(uint32_t key, float temperature) {
    return key > key_of(gb_negative_infinity()) ? gb_scale(value_of(key), temperature)
                                                : gb_negative_infinity();
}

/* Lists the groups that have a candidate with s >= least, and perhaps some that have not; keys are loaded.
 * Needs all threads. */
__device__ inline void list_groups(const uint32_t *maxima, uint32_t groups, float temperature, float least,
                                   group_list *list) {
    const uint32_t none = key_of(gb_negative_infinity());
    const uint32_t reaching = key_of(gb_logit_bound(least, temperature));
    const uint32_t bound = reaching > none ? reaching : none + 1;
#pragma unroll 4
    for (uint32_t g = threadIdx.x; g < groups; g += ROW_THREADS) {
        const uint32_t key = g < MOST_GROUPS ? list->keys[g] : maxima[g];
        if (key < bound)
            continue;
        const uint32_t at = atomicAdd(&list->count, 1u);
        if (at < MOST_GROUPS)
            list->groups[at] = (uint16_t)g; /* a row has fewer than 2^23 logits */
        if (at < FEW_GROUPS)
            list->largest[at] = key;
    }
    __syncthreads();
}

/* The key of the wanted-th largest of few listed groups, each compared with all others. Needs all threads. */
__device__ inline uint32_t bound_among(uint32_t wanted, group_list *list) {
    const unsigned count = list->count, lanes = count <= ROW_THREADS / 4 ? 4 : 1;
    const unsigned own = threadIdx.x / lanes;
    const uint32_t key = own < count ? list->largest[own] : 0;
    uint32_t greater = 0;
#pragma unroll 4
    for (unsigned i = threadIdx.x % lanes; i < count; i += lanes)
        greater += list->largest[i] > key ? 1u : 0u;
    for (int distance = 1; distance < 4; distance *= 2) {
        const uint32_t more = __shfl_xor_sync(0xffffffffu, greater, distance);
        greater += lanes == 4 ? more : 0;
    }
    if (threadIdx.x == 0)
        list->bound = 0xffffffffu;
    __syncthreads();
    if (own < count && greater < wanted)
        atomicMin(&list->bound, key);
    __syncthreads();
    return list->bound;
}

/* Lists the groups that can have one of the `wanted` largest s, and gives an s that so many reach: the
 * wanted-th largest of the groups'. Keys are loaded. Needs all threads, and a barrier before. */
__device__ inline float list_largest(const uint32_t *maxima, uint32_t groups, uint32_t wanted,
                                     float temperature, group_list *list, select_memory *select) {
    const bool is_few = wanted <= FEW_GROUPS / 4 && groups <= MOST_GROUPS;
    const uint32_t bound = is_few
                               ? bound_by_warps(wanted, list)
                               : select_in_block(groups, wanted - 1, select, [&](unsigned g, uint32_t *key) {
                                     *key = maxima[g];
                                     return (weight_sum)1;
                                 });
    const float least = scaled_key(bound, temperature);
    list_groups(maxima, groups, temperature, least, list);
    if (list->count < wanted) /* their other logits are wanted, too */
        return gb_negative_infinity();
    if (!is_few || list->count > FEW_GROUPS)
        return least;
    return scaled_key(bound_among(wanted, list), temperature);
}

/* Visits the candidates with s >= least of the listed groups: visit(index, s). A warp reads a group while it
 * goes through the one before. */
template <typename Visit>
__device__ void visit_groups(const group_list *list, const float *row, uint32_t size, float temperature,
                             float least, Visit visit) {
    const unsigned lane = threadIdx.x % WARP, count = list->count;
    const float bound = gb_logit_bound(least, temperature); /* which spares most divisions */
    float x[GROUP_EACH], next[GROUP_EACH] = {};
    uint32_t first = 0, next_first = 0;
#pragma unroll 1
    for (unsigned at = threadIdx.x / WARP; at < count + ROW_WARPS; at += ROW_WARPS) {
        first = next_first;
#pragma unroll
        for (int j = 0; j < GROUP_EACH; j++)
            x[j] = next[j];
        next_first = at < count ? list->groups[at] * GROUP + lane * GROUP_EACH : size;
        load_logits(row, size, next_first, next);
        if (at < ROW_WARPS)
            continue;
#pragma unroll
        for (int j = 0; j < GROUP_EACH; j++) {
            if (!(x[j] >= bound) || x[j] == gb_negative_infinity())
                continue;
            const float s = gb_scale(x[j], temperature);
            if (s >= least)
                visit(first + (unsigned)j, s);
        }
    }
}

} // namespace gb_cuda

#endif
