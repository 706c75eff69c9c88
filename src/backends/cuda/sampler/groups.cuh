/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of logits by groups of 128, with the largest of each: what is far below the top is passed over by its
 * group's largest, without being read.
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_GROUPS_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_GROUPS_CUH

#include "backends/cuda/sampler/select.cuh"

namespace gb_cuda {

enum { ROW_THREADS = 512, ROW_WARPS = ROW_THREADS / WARP };
enum { GROUP = 128, GROUP_EACH = GROUP / WARP };
/* Of a row with at most MOST_GROUPS groups each thread has the largest of KEYS_EACH; MOST_WANTED of a row's
 * largest are found among those. */
enum { KEYS_EACH = 4, MOST_GROUPS = ROW_THREADS * KEYS_EACH, MOST_WANTED = 128 };

/* A key like key_of's; that of a NaN is larger than all. */
__device__ inline uint32_t logit_key(float x) {
    return x == x ? key_of(x) : 0xffffffffu;
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

/* Writes them back, but for those past the end. */
__device__ inline void store_logits(float *row, uint32_t size, uint32_t i, const float *x) {
    if (size % GROUP_EACH == 0 && i < size) {
        *reinterpret_cast<float4 *>(row + i) = {x[0], x[1], x[2], x[3]};
        return;
    }
#pragma unroll
    for (int j = 0; j < GROUP_EACH; j++)
        if (i + (unsigned)j < size)
            row[i + (unsigned)j] = x[j];
}

/* ---- Scanning ------------------------------------------------------------------------------------------ */

/* What a scan finds of a row's groups. */
struct group_maxima {
    uint32_t *keys;   /* the largest, as logit_key has it */
    uint8_t *offsets; /* where in the group it is; the first of equals */
};

__device__ inline group_maxima maxima_of_row(group_maxima all, size_t b, uint32_t groups) {
    return {all.keys + b * groups, all.offsets + b * groups};
}

/* The group that the block's warp scans as its g-th of EACH. */
template <int EACH>
__device__ uint32_t scanned_group(int g) {
    return (blockIdx.x * ROW_WARPS + threadIdx.x / WARP) * EACH + (unsigned)g;
}

/* Writes what a warp finds of a group, of which each lane has GROUP_EACH logits. */
__device__ inline void write_maximum(const float x[GROUP_EACH], uint32_t group, uint32_t groups,
                                     const group_maxima &maxima) {
    const unsigned lane = threadIdx.x % WARP;
    const float own = largest_or_nan(largest_or_nan(x[0], x[1]), largest_or_nan(x[2], x[3]));
    const uint32_t key = logit_key(own), largest = largest_in_warp(key);
    const unsigned votes = __ballot_sync(0xffffffffu, key == largest);
    if (group >= groups || (votes & (0u - votes)) != 1u << lane)
        return;
    const unsigned at = x[0] == own ? 0 : x[1] == own ? 1 : x[2] == own ? 2 : 3;
    maxima.keys[group] = largest;
    maxima.offsets[group] = (uint8_t)(lane * GROUP_EACH + at);
}

/* Reads the block's EACH * ROW_WARPS groups of a row. */
template <int EACH>
__device__ void load_groups(const float *row, uint32_t size, float x[EACH][GROUP_EACH]) {
#pragma unroll
    for (int g = 0; g < EACH; g++)
        load_logits(row, size, scanned_group<EACH>(g) * GROUP + threadIdx.x % WARP * GROUP_EACH, x[g]);
}

/* Finds the largest of each of them. */
template <int EACH>
__device__ void write_maxima(const float x[EACH][GROUP_EACH], uint32_t groups, const group_maxima &maxima) {
#pragma unroll
    for (int g = 0; g < EACH; g++)
        write_maximum(x[g], scanned_group<EACH>(g), groups, maxima);
}

/* Blocks that scan a row together. */
__host__ __device__ inline uint32_t blocks_for_groups(uint32_t groups, uint32_t each) {
    return (groups + each * ROW_WARPS - 1) / (each * ROW_WARPS);
}

/* The best logit of a row that was scanned, packed, a NaN above all. Needs all threads. */
__device__ inline weight_sum best_of_row(const group_maxima &maxima, uint32_t groups, weight_sum *of_warps) {
    weight_sum best = 0;
#pragma unroll 4
    for (uint32_t g = threadIdx.x; g < groups; g += ROW_THREADS) {
        const weight_sum key = maxima.keys[g], at = (uint32_t) ~(g * GROUP + maxima.offsets[g]);
        best = (key << 32 | at) > best ? key << 32 | at : best;
    }
    return block_best(best, of_warps);
}

/* ---- The largest groups -------------------------------------------------------------------------------- */

/* Groups that are to be read, in shared memory. */
struct group_list {
    alignas(16) uint32_t of_warps[2 * MOST_WANTED]; /* the largest keys that each warp knows */
    uint32_t count;                                 /* may exceed MOST_GROUPS: then not all are listed */
    uint32_t bound, has_nan;
    uint16_t groups[MOST_GROUPS];
};

/* To be called before a barrier. */
__device__ inline void clear_list(group_list *list) {
    if (threadIdx.x == 0) {
        list->count = list->has_nan = 0;
        list->bound = 0xffffffffu;
    }
}

/* The keys of groups t, t + ROW_THREADS and so on, 0 past the last; notes a NaN in the list. */
__device__ inline void load_keys(const uint32_t *keys, uint32_t groups, uint32_t key[KEYS_EACH],
                                 group_list *list) {
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        key[j] = threadIdx.x + j * ROW_THREADS < groups ? keys[threadIdx.x + j * ROW_THREADS] : 0;
    uint32_t largest = 0;
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        largest = key[j] > largest ? key[j] : largest;
    if (largest == 0xffffffffu)
        list->has_nan = 1;
}

/* A key that at least `wanted` <= MOST_WANTED of the threads' keys reach; 0 where fewer are above 0. Each
 * warp lists its largest, together twice as many as wanted, and the wanted-th of those is the key, which
 * few others reach. Needs all threads, and a barrier after clear_list. */
__device__ inline uint32_t bound_of_keys(uint32_t wanted, const uint32_t key[KEYS_EACH], group_list *list) {
    enum { LANES = 4 }; /* that compare a key with the others */
    const uint32_t each = (wanted + 7) / 8, count = each * ROW_WARPS;
    uint32_t own = 0;
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        own = key[j] > own ? key[j] : own;
#pragma unroll 1
    for (uint32_t i = threadIdx.x / WARP; i < count; i += ROW_WARPS) {
        const uint32_t largest = largest_in_warp(own);
        const unsigned votes = __ballot_sync(0xffffffffu, own == largest);
        if ((votes & (0u - votes)) == 1u << threadIdx.x % WARP) { /* one of equals */
            list->of_warps[i] = largest;
            own = 0;
        }
    }
    __syncthreads();
    const uint4 *four = reinterpret_cast<const uint4 *>(list->of_warps);
#pragma unroll 1
    for (uint32_t i = threadIdx.x / LANES; i < count; i += ROW_THREADS / LANES) {
        const uint32_t compared = list->of_warps[i];
        uint32_t greater = 0;
#pragma unroll 2
        for (uint32_t k = threadIdx.x % LANES; k < count / 4; k += LANES)
            greater += (four[k].x > compared) + (four[k].y > compared) + (four[k].z > compared) +
                       (four[k].w > compared);
        greater += __shfl_xor_sync(0xffffffffu, greater, 1);
        greater += __shfl_xor_sync(0xffffffffu, greater, 2);
        const uint32_t least = ~largest_in_warp(greater < wanted ? ~compared : 0);
        if (threadIdx.x % WARP == 0)
            atomicMin(&list->bound, least);
    }
    __syncthreads();
    return list->bound;
}

/* The s of a key, -inf where that is of no candidate. */
__device__ inline float scaled_key(uint32_t key, float temperature) {
    return key > key_of(gb_negative_infinity()) ? gb_scale(value_of(key), temperature)
                                                : gb_negative_infinity();
}

/* A logit that all candidates reach which can have s >= least. */
__device__ inline float reaching_logit(float least, float temperature) {
    const float lowest = -gb_float_from_bits(0x7f7fffff), bound = gb_logit_bound(least, temperature);
    return bound > lowest ? bound : lowest;
}

/* Lists the groups of the threads' keys that reach a logit; where not NULL, place_of [MOST_GROUPS] gets their
 * places in the list, from 1 on. Needs all threads. */
__device__ inline void list_keys(const uint32_t key[KEYS_EACH], float logit, group_list *list,
                                 uint16_t *place_of) {
    const uint32_t bound = key_of(logit);
    uint32_t count = 0;
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        count += key[j] >= bound ? 1u : 0u;
    if (count > 0) {
        uint32_t at = atomicAdd(&list->count, count);
#pragma unroll
        for (unsigned j = 0; j < KEYS_EACH; j++) {
            const uint32_t group = threadIdx.x + j * ROW_THREADS;
            if (key[j] < bound)
                continue;
            list->groups[at++] = (uint16_t)group;
            if (place_of)
                place_of[group] = (uint16_t)at;
        }
    }
    __syncthreads();
}

/* Lists the groups that can have one of the `wanted` largest s, and gives an s that so many reach. For any
 * number of groups, and any that is wanted. Needs all threads, and a barrier after clear_list. */
static __device__ __noinline__ float list_by_bins(const uint32_t *keys, uint32_t groups, uint32_t wanted,
                                                  float temperature, group_list *list,
                                                  select_memory *select) {
    const uint32_t key = select_in_block(groups, wanted - 1, select, [&](unsigned g, uint32_t *of_group) {
        *of_group = keys[g];
        return (weight_sum)1;
    });
    const float least = scaled_key(key, temperature);
    const uint32_t bound = key_of(reaching_logit(least, temperature));
    for (uint32_t g = threadIdx.x; g < groups; g += ROW_THREADS) {
        if (keys[g] < bound)
            continue;
        const uint32_t at = atomicAdd(&list->count, 1u);
        if (at < MOST_GROUPS)
            list->groups[at] = (uint16_t)g; /* a row has fewer than 2^23 logits */
    }
    __syncthreads();
    return least;
}

/* Visits the logits of the listed groups that reach a bound: take(i) for logit i of the row. load(place,
 * i, x) reads logits i .. i + GROUP_EACH - 1, -inf past the end. A warp has several groups in flight; few
 * logits reach the bound. */
template <typename Load, typename Take>
__device__ void visit_groups(const group_list *groups, uint32_t size, float bound, Load load, Take take) {
    enum { EACH = 6 };
    const unsigned lane = threadIdx.x % WARP, count = groups->count;
#pragma unroll 1
    for (unsigned begin = threadIdx.x / WARP; begin < count; begin += ROW_WARPS * EACH) {
        float x[EACH][GROUP_EACH];
        uint32_t taken = 0; /* bits */
#pragma unroll
        for (unsigned g = 0; g < EACH; g++) {
            const unsigned at = begin + g * ROW_WARPS;
            load(at, at < count ? groups->groups[at] * GROUP + lane * GROUP_EACH : size, x[g]);
        }
#pragma unroll
        for (unsigned i = 0; i < EACH * GROUP_EACH; i++)
            taken |= x[i / GROUP_EACH][i % GROUP_EACH] >= bound ? 1u << i : 0u;
#pragma unroll 1
        for (; taken != 0; taken &= taken - 1) {
            const unsigned i = 31u - (unsigned)__clz((int)(taken & (0u - taken)));
            const unsigned at = begin + i / GROUP_EACH * ROW_WARPS;
            take(groups->groups[at] * GROUP + lane * GROUP_EACH + i % GROUP_EACH);
        }
    }
}

} // namespace gb_cuda

#endif
