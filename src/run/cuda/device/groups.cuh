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
__device__ void scan_groups(const float *row, uint32_t size, uint32_t groups, const group_maxima &maxima) {
    float x[EACH][GROUP_EACH];
    load_groups<EACH>(row, size, x);
#pragma unroll
    for (int g = 0; g < EACH; g++)
        write_maximum(x[g], scanned_group<EACH>(g), groups, maxima);
}

/* Blocks that scan a row together. */
inline uint32_t blocks_for_groups(uint32_t groups, uint32_t each) {
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

/* The keys of groups t, t + ROW_THREADS and so on, 0 past the last; tells the list of a NaN. */
__device__ inline void load_keys(const uint32_t *keys, uint32_t groups, uint32_t key[KEYS_EACH],
                                 group_list *list) {
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        key[j] = threadIdx.x + j * ROW_THREADS < groups ? keys[threadIdx.x + j * ROW_THREADS] : 0;
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        if (key[j] == 0xffffffffu)
            list->has_nan = 1;
}

__device__ inline void put_larger_first(uint32_t *a, uint32_t *b) {
    const uint32_t larger_one = *a > *b ? *a : *b;
    *b = *a > *b ? *b : *a;
    *a = larger_one;
}

/* A key that at least `wanted` <= MOST_WANTED of the threads' keys reach, 0 where not so many are above 0:
 * the wanted-th largest of what the warps' eighths of twice as many have, which is mostly that of all. Needs
 * all threads, and a barrier after clear_list. */
__device__ inline uint32_t bound_of_keys(uint32_t wanted, const uint32_t keys[KEYS_EACH], group_list *list) {
    const uint32_t each = (wanted + 7) / 8, count = each * ROW_WARPS;
    const unsigned lane = threadIdx.x % WARP;
    uint32_t key[KEYS_EACH] = {keys[0], keys[1], keys[2], keys[3]};
    put_larger_first(&key[0], &key[1]);
    put_larger_first(&key[2], &key[3]);
    put_larger_first(&key[0], &key[2]);
    put_larger_first(&key[1], &key[3]);
    put_larger_first(&key[1], &key[2]);
#pragma unroll 1
    for (uint32_t i = threadIdx.x / WARP; i < count; i += ROW_WARPS) {
        const uint32_t largest = largest_in_warp(key[0]);
        const unsigned votes = __ballot_sync(0xffffffffu, key[0] == largest);
        if ((votes & (0u - votes)) == 1u << lane) { /* one of equals */
            list->of_warps[i] = largest;
            key[0] = key[1];
            key[1] = key[2];
            key[2] = key[3];
            key[3] = 0;
        }
    }
    __syncthreads();
    const uint32_t own = threadIdx.x / 2 < count ? list->of_warps[threadIdx.x / 2] : 0;
    const uint4 *four = reinterpret_cast<const uint4 *>(list->of_warps) + threadIdx.x % 2;
    uint32_t greater = 0;
#pragma unroll 4
    for (uint32_t i = 0; i < count; i += 8, four += 2)
        greater += (four->x > own) + (four->y > own) + (four->z > own) + (four->w > own);
    greater += __shfl_xor_sync(0xffffffffu, greater, 1);
    const bool is_reached = threadIdx.x / 2 < count && greater < wanted;
    const uint32_t least = ~largest_in_warp(is_reached ? ~own : 0);
    if (lane == 0)
        atomicMin(&list->bound, least);
    __syncthreads();
    return list->bound;
}

/* The s of a key, -inf where that is of no candidate. */
__device__ inline float scaled_key(uint32_t key, float temperature) {
    return key > key_of(gb_negative_infinity()) ? gb_scale(value_of(key), temperature)
                                                : gb_negative_infinity();
}

/* The least key of a candidate that can have s >= least. */
__device__ inline uint32_t reaching_key(float least, float temperature) {
    const uint32_t none = key_of(gb_negative_infinity());
    const uint32_t reaching = key_of(gb_logit_bound(least, temperature));
    return reaching > none ? reaching : none + 1;
}

__device__ inline void list_group(uint32_t group, group_list *list) {
    const uint32_t at = atomicAdd(&list->count, 1u);
    if (at < MOST_GROUPS)
        list->groups[at] = (uint16_t)group; /* a row has fewer than 2^23 logits */
}

/* Lists the groups of the threads' keys that reach a bound. Needs all threads. */
__device__ inline void list_keys(const uint32_t key[KEYS_EACH], uint32_t bound, group_list *list) {
#pragma unroll
    for (unsigned j = 0; j < KEYS_EACH; j++)
        if (key[j] >= bound)
            list_group(threadIdx.x + j * ROW_THREADS, list);
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
    const uint32_t bound = reaching_key(least, temperature);
    for (uint32_t g = threadIdx.x; g < groups; g += ROW_THREADS)
        if (keys[g] >= bound)
            list_group(g, list);
    __syncthreads();
    return least;
}

/* Visits the candidates with s >= least of the listed groups: visit(index, s). load(i, x) reads logits
 * i .. i + GROUP_EACH - 1, -inf past the row's end. A warp has several groups on their way at a time. */
template <typename Load, typename Visit>
__device__ void visit_groups(const group_list *list, uint32_t size, float temperature, float least, Load load,
                             Visit visit) {
    enum { EACH = 6 };
    const unsigned lane = threadIdx.x % WARP, count = list->count;
    const float bound = gb_logit_bound(least, temperature); /* which spares most divisions */
#pragma unroll 1
    for (unsigned begin = threadIdx.x / WARP; begin < count; begin += ROW_WARPS * EACH) {
        float x[EACH][GROUP_EACH];
        uint32_t first[EACH];
#pragma unroll
        for (unsigned g = 0; g < EACH; g++) {
            const unsigned at = begin + g * ROW_WARPS;
            first[g] = at < count ? list->groups[at] * GROUP + lane * GROUP_EACH : size;
            load(first[g], x[g]);
        }
#pragma unroll
        for (unsigned g = 0; g < EACH; g++) {
            if (!(larger(larger(x[g][0], x[g][1]), larger(x[g][2], x[g][3])) >= bound))
                continue;
#pragma unroll 1
            for (unsigned j = 0; j < GROUP_EACH; j++) {
                const float value = j == 0 ? x[g][0] : j == 1 ? x[g][1] : j == 2 ? x[g][2] : x[g][3];
                if (!(value >= bound) || value == gb_negative_infinity())
                    continue;
                const float s = gb_scale(value, temperature);
                if (s >= least)
                    visit(first[g] + j, s);
            }
        }
    }
}

} // namespace gb_cuda

#endif
