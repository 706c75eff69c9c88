/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding thresholds by histograms of the floats' bits, never by sorting. Weights are integers, so that the
 * order in which they are summed does not matter. (docs/sampling.md)
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_SELECT_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_SELECT_CUH

#include "backends/cuda/device/warp_integers.cuh"
#include "backends/sampler/rule.h"

namespace gb_cuda {

typedef unsigned long long weight_sum;

/* Larger keys for larger floats; the same key for both zeros. NaNs lie outside of the keys of -inf..+inf. */
__device__ inline uint32_t key_of(float x) {
    const uint32_t bits = gb_float_bits(x + 0.0f);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
}

__device__ inline float value_of(uint32_t key) {
    return gb_float_from_bits((key & 0x80000000u) ? key ^ 0x80000000u : ~key);
}

/* A value with its index, as a number that is larger for a larger value, then for a lower index. No value: 0.
 */
__device__ inline weight_sum pack_best(float value, uint32_t index) {
    return (weight_sum)key_of(value) << 32 | (uint32_t)~index;
}
__device__ inline uint32_t best_index(weight_sum packed) {
    return ~(uint32_t)packed;
}
__device__ inline float best_value(weight_sum packed) {
    return value_of((uint32_t)(packed >> 32));
}

/* The largest of a warp's packed values, in every lane. */
__device__ inline weight_sum best_in_warp(weight_sum best) {
    const uint32_t high = (uint32_t)(best >> 32), largest = largest_in_warp(high);
    return (weight_sum)largest << 32 | largest_in_warp(high == largest ? (uint32_t)best : 0);
}

/* The largest of a block's packed values, in every thread. of_warps: one for each warp, in shared memory. */
__device__ inline weight_sum block_best(weight_sum best, weight_sum *of_warps) {
    const unsigned warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    best = best_in_warp(best);
    __syncthreads();
    if (lane == 0)
        of_warps[threadIdx.x / WARP] = best;
    __syncthreads();
    return best_in_warp(lane < warps ? of_warps[lane] : 0);
}

/* The sum over a block, in every thread. of_warps: one for each warp, in shared memory. */
static __device__ __noinline__ weight_sum block_total(weight_sum own, weight_sum *of_warps) {
    const unsigned warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        own += __shfl_xor_sync(0xffffffffu, own, distance);
    __syncthreads();
    if (lane == 0)
        of_warps[threadIdx.x / WARP] = own;
    __syncthreads();
    own = lane < warps ? of_warps[lane] : 0;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        own += __shfl_xor_sync(0xffffffffu, own, distance);
    return own;
}

/* Sums of weights in shared memory, in two words each: the device adds words there at once, but pairs of
 * words only by trying until nobody interferes. */
template <int BINS>
struct weight_bins {
    uint32_t low[BINS], high[BINS];
};

template <int BINS>
__device__ void clear_bins(weight_bins<BINS> *bins) {
    for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x)
        bins->low[i] = bins->high[i] = 0;
}

/* Weights are at most 2^40, and 2^23 of them may be added. */
template <int BINS>
__device__ void add_to_bin(weight_bins<BINS> *bins, unsigned bin, weight_sum weight) {
    const uint32_t low = (uint32_t)weight, before = atomicAdd(&bins->low[bin], low);
    const uint32_t high = (uint32_t)(weight >> 32) + (before + low < low ? 1u : 0u);
    if (high != 0)
        atomicAdd(&bins->high[bin], high);
}

template <int BINS>
__device__ weight_sum sum_of_bin(const weight_bins<BINS> *bins, unsigned bin) {
    return (weight_sum)bins->high[bin] << 32 | bins->low[bin];
}

/* Where a running sum of weights, from the last bin down, first exceeds a limit. */
struct found_bin {
    int bin;          /* -1: nowhere */
    weight_sum above; /* of the bins after it */
};

/* What finding one takes of shared memory. */
struct finding_memory {
    weight_sum of_warps[8];
    found_bin answer;
};

/* Finds it in BINS bins, weight_of(bin) each, with above already summed; needs at least 256 threads. Bins
 * are read after the first barrier inside as well; the answer is every thread's. */
template <int BINS, typename Weight>
__device__ found_bin find_bin(weight_sum above, weight_sum limit, finding_memory *memory, Weight weight_of) {
    enum { FINDERS = 256, EACH = BINS / FINDERS };
    const unsigned t = threadIdx.x, lane = t % WARP;
    const int last = BINS - 1 - (int)t * EACH;
    weight_sum own = 0;
    for (int i = 0; t < FINDERS && i < EACH; i++)
        own += weight_of((unsigned)(last - i));
    weight_sum sum = own;
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const weight_sum other = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    __syncthreads();
    if (t == 0)
        memory->answer = {-1, 0};
    if (t < FINDERS && lane == WARP - 1)
        memory->of_warps[t / WARP] = sum;
    __syncthreads();
    sum += above;
#pragma unroll 1
    for (unsigned w = 0; t < FINDERS && w < t / WARP; w++)
        sum += memory->of_warps[w];
    if (t < FINDERS && sum > limit && sum - own <= limit) {
        weight_sum before = sum - own;
        unsigned bin = (unsigned)last;
#pragma unroll 1
        while (before + weight_of(bin) <= limit)
            before += weight_of(bin--);
        memory->answer = {(int)bin, before};
    }
    __syncthreads();
    return memory->answer;
}

/* Shared memory of select_in_block. */
struct select_memory {
    weight_bins<256> bins;
    finding_memory finding;
};

/* The key at which the running sum of weights, from the largest key down, first exceeds limit; 0 where it
 * never does. A block finds it among items 0 .. count - 1: get(i, &key) gives an item's weight. */
template <typename Get>
__device__ uint32_t select_in_block(unsigned count, weight_sum limit, select_memory *memory, Get get) {
    uint32_t prefix = 0;
    weight_sum above = 0;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        clear_bins(&memory->bins);
        __syncthreads();
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
            uint32_t key;
            const weight_sum weight = get(i, &key);
            if (weight != 0 && (shift == 24 || key >> (shift + 8) == prefix >> (shift + 8)))
                add_to_bin(&memory->bins, key >> shift & 255, weight);
        }
        __syncthreads();
        const found_bin found = find_bin<256>(above, limit, &memory->finding,
                                              [&](unsigned bin) { return sum_of_bin(&memory->bins, bin); });
        if (found.bin < 0)
            return 0;
        prefix |= (uint32_t)found.bin << shift;
        above = found.above;
    }
    return prefix;
}

} // namespace gb_cuda

#endif
