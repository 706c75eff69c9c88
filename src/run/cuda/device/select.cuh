/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding thresholds by histograms of the floats' bits, never by sorting. Weights are integers, so that the
 * order in which they are summed does not matter. (docs/sampling.md)
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_SELECT_CUH
#define GUMBEL_RUN_CUDA_DEVICE_SELECT_CUH

#include "run/cuda/device/device.cuh"
#include "run/sampler/rule.h"

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

/* The largest of a block's values, in every thread. of_warps: one for each warp, in shared memory. */
__device__ inline weight_sum block_best(weight_sum best, weight_sum *of_warps) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const weight_sum other = __shfl_xor_sync(0xffffffffu, best, distance);
        best = other > best ? other : best;
    }
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        of_warps[threadIdx.x / WARP] = best;
    __syncthreads();
    for (unsigned w = 0; w < blockDim.x / WARP; w++)
        best = of_warps[w] > best ? of_warps[w] : best;
    return best;
}

/* Where a running sum of weights, from the last bin down, first exceeds a limit. */
struct found_bin {
    int bin;          /* -1: nowhere */
    weight_sum above; /* of the bins after it */
};

/* Finds it in BINS bins, with above already summed; needs at least 256 threads. Bins are read before the
 * first barrier inside, the answer is every thread's. shared: room for 9 sums and a found_bin. */
template <int BINS>
__device__ found_bin find_bin(const weight_sum *bins, weight_sum above, weight_sum limit,
                              weight_sum *shared) {
    enum { FINDERS = 256, EACH = BINS / FINDERS };
    found_bin *answer = reinterpret_cast<found_bin *>(shared + FINDERS / WARP + 1);
    const unsigned t = threadIdx.x, lane = t % WARP;
    const int last = BINS - 1 - (int)t * EACH;
    weight_sum own = 0;
    for (int i = 0; t < FINDERS && i < EACH; i++)
        own += bins[last - i];
    weight_sum sum = own;
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const weight_sum other = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    __syncthreads();
    if (t == 0) {
        answer->bin = -1;
        answer->above = 0;
    }
    if (t < FINDERS && lane == WARP - 1)
        shared[t / WARP] = sum;
    __syncthreads();
    sum += above;
    for (unsigned w = 0; t < FINDERS && w < t / WARP; w++)
        sum += shared[w];
    if (t < FINDERS && sum > limit && sum - own <= limit) {
        weight_sum before = sum - own;
        int bin = last;
        while (before + bins[bin] <= limit)
            before += bins[bin--];
        answer->bin = bin;
        answer->above = before;
    }
    __syncthreads();
    const found_bin found = *answer;
    __syncthreads();
    return found;
}

/* Shared memory of select_in_block. */
struct select_memory {
    weight_sum bins[256];
    weight_sum finding[12];
};

/* The key at which the running sum of weights, from the largest key down, first exceeds limit; 0 where it
 * never does. A block finds it among items 0 .. count - 1: get(i, &key) gives an item's weight. */
template <typename Get>
__device__ uint32_t select_in_block(unsigned count, weight_sum limit, select_memory *memory, Get get) {
    uint32_t prefix = 0;
    weight_sum above = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
            memory->bins[i] = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
            uint32_t key;
            const weight_sum weight = get(i, &key);
            if (weight != 0 && (shift == 24 || key >> (shift + 8) == prefix >> (shift + 8)))
                atomicAdd(&memory->bins[key >> shift & 255], weight);
        }
        __syncthreads();
        const found_bin found = find_bin<256>(memory->bins, above, limit, memory->finding);
        if (found.bin < 0)
            return 0;
        prefix |= (uint32_t)found.bin << shift;
        above = found.above;
    }
    return prefix;
}

} // namespace gb_cuda

#endif
