/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing of a token: the softmax over its logits and the largest probabilities. Up to BLOCK_EXPERTS a thread
 * has an expert, which is little code to fetch in every launch; beyond, a warp has the row in registers,
 * expert i in lane i % 32. Both add in the same order.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_ROUTING_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_ROUTING_CUH

#include "backends/cuda/sampler/select.cuh"

namespace gb_cuda {

enum {
    ROUTING_WARPS = 8,
    BLOCK_EXPERTS = ROUTING_WARPS * WARP,
    MOST_BLOCK_CHOICES = 8,
    LISTED_EXPERTS = ROUTING_WARPS * MOST_BLOCK_CHOICES
};

/* Sort key of a probability: its bits and 1, NaN above all others; 0: none, or chosen already. */
__device__ inline uint32_t probability_key(float p) {
    return p == p ? gb_float_bits(p) + 1 : 0x7f800002u;
}
__device__ inline float probability_of_key(uint32_t key) {
    return key > 0x7f800001u ? gb_float_from_bits(0x7fc00000u) : gb_float_from_bits(key - 1);
}

/* Memory of choose_in_block, of which keys are free again once it has returned in any thread. */
struct block_routing {
    alignas(16) uint32_t keys[BLOCK_EXPERTS], listed_keys[LISTED_EXPERTS];
    float values[BLOCK_EXPERTS];
    uint32_t maxima[ROUTING_WARPS], listed_experts[LISTED_EXPERTS];
    uint32_t chosen_keys[MOST_BLOCK_CHOICES], chosen_experts[MOST_BLOCK_CHOICES]; /* the result */

    /* The weight of number t of `choices` that are chosen: its probability, divided by the sum of theirs
     * where it is normalized. */
    __device__ float weight(uint32_t t, uint32_t choices, bool normalized) const {
        const float probability = probability_of_key(chosen_keys[t]);
        float sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < MOST_BLOCK_CHOICES; i++)
            sum += i < choices ? probability_of_key(chosen_keys[i]) : 0.0f;
        return normalized ? probability / sum : probability;
    }
};

/* Thread i's probability of expert i as a key. BLOCK_EXPERTS threads call it. Where a logit is NaN all
 * probabilities are, whatever the largest one is found to be. */
__device__ inline uint32_t softmax_in_block(const float *logits, uint32_t count, block_routing &memory) {
    const uint32_t i = threadIdx.x, lane = i % WARP;
    const float x = i < count ? logits[i] : gb_float_from_bits(0xff800000u);
    const uint32_t of_warp = largest_in_warp(key_of(x));
    if (lane == 0)
        memory.maxima[i / WARP] = of_warp;
    __syncthreads();
    const float largest = value_of(largest_in_warp(memory.maxima[lane % ROUTING_WARPS]));
    const float e = i < count ? gb_exp(x - largest) : 0.0f;
    memory.values[i] = e;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < ROUTING_WARPS; j++)
        sum += memory.values[lane + j * WARP];
    sum = warp_sum(sum);
    return i < count ? probability_key(e / sum) : 0;
}

/* How many of four keys are at least that large. */
__device__ inline uint32_t count_from(const uint4 &keys, uint32_t least) {
    return (keys.x >= least ? 1u : 0u) + (keys.y >= least ? 1u : 0u) + (keys.z >= least ? 1u : 0u) +
           (keys.w >= least ? 1u : 0u);
}

/* The place of the lane's key among the keys [WARP] of its warp, larger ones first, then those of lower
 * lanes: in fours before the lane's own, equal keys count as well as larger ones. */
__device__ inline uint32_t rank_in_warp(const uint32_t *keys, uint32_t key) {
    const uint32_t own = threadIdx.x % WARP / 4, place = threadIdx.x % 4;
    const uint4 *fours = reinterpret_cast<const uint4 *>(keys);
    const uint4 near = fours[own];
    uint32_t rank = (place > 0 && near.x == key ? 1u : 0u) + (place > 1 && near.y == key ? 1u : 0u) +
                    (place > 2 && near.z == key ? 1u : 0u);
#pragma unroll
    for (uint32_t i = 0; i < WARP / 4; i++)
        rank += count_from(fours[i], i < own ? key : key + 1);
    return rank;
}

/* The place of a key, which is number `position` of list `own`, among those of all lists, larger ones first,
 * then those of lower lists. The four lanes who have the key look through two lists each. */
__device__ inline uint32_t rank_in_lists(const uint32_t *keys, uint32_t key, uint32_t own,
                                         uint32_t position) {
    uint32_t rank = 0;
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t list = threadIdx.x % 4 + half * (ROUTING_WARPS / 2),
                       least = list < own ? key : key + 1;
        const uint4 *fours = reinterpret_cast<const uint4 *>(keys + list * MOST_BLOCK_CHOICES);
        const uint32_t before = count_from(fours[0], least) + count_from(fours[1], least);
        rank += list == own ? position : before;
    }
    rank += __shfl_xor_sync(0xffffffffu, rank, 1);
    return rank + __shfl_xor_sync(0xffffffffu, rank, 2);
}

/* The MOST_BLOCK_CHOICES largest probabilities, the lowest expert first among equals; missing ones last.
 * Each warp lists its own and then ranks them by counting, which waits less than choosing one after the
 * other. */
__device__ inline void choose_in_block(const float *logits, uint32_t count, block_routing &memory) {
    static_assert(MOST_BLOCK_CHOICES * 4 == WARP && ROUTING_WARPS == 2 * 4, "four lanes for a listed key");
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint32_t *const of_warp = memory.keys + warp * WARP, first = warp * MOST_BLOCK_CHOICES;
    const uint32_t key = softmax_in_block(logits, count, memory);
    of_warp[lane] = key;
    __syncwarp();
    const uint32_t place = rank_in_warp(of_warp, key);
    if (place < MOST_BLOCK_CHOICES) {
        memory.listed_keys[first + place] = key;
        memory.listed_experts[first + place] = threadIdx.x;
    }
    __syncthreads();
    const uint32_t listed = memory.listed_keys[first + lane / 4],
                   expert = memory.listed_experts[first + lane / 4];
    const uint32_t rank = rank_in_lists(memory.listed_keys, listed, warp, lane / 4);
    if (lane % 4 == 0 && rank < MOST_BLOCK_CHOICES) {
        memory.chosen_keys[rank] = listed;
        memory.chosen_experts[rank] = expert;
    }
    __syncthreads();
}

/* The lane's experts are lane, lane + 32, .. below count, at most EACH of them. A key is larger for an expert
 * that goes before; 0: none, or taken already. */
template <int EACH>
struct warp_choice {
    uint32_t keys[EACH];

    /* Takes the largest key that is left, the lowest expert's among equals. All lanes have the results. */
    __device__ int take(uint32_t *key) {
        const uint32_t lane = threadIdx.x % WARP;
        uint32_t best = keys[0], place = 0;
#pragma unroll
        for (int j = 1; j < EACH; j++)
            if (keys[j] > best) {
                best = keys[j];
                place = (uint32_t)j;
            }
        const uint32_t most = largest_in_warp(best);
        /* The lowest expert is the largest of the numbers that count down. */
        const uint32_t number = place * WARP + lane;
        const uint32_t expert = ~largest_in_warp(best == most ? ~number : 0u);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (expert == (uint32_t)j * WARP + lane)
                keys[j] = 0;
        *key = most;
        return (int)expert;
    }
};

/* The probabilities of a softmax as keys. */
template <int EACH>
struct warp_routing {
    warp_choice<EACH> choice;

    /* Makes the probabilities of logits [count]. */
    __device__ void create(const float *logits, int count) {
        const int lane = (int)(threadIdx.x % WARP);
        float x[EACH], sum = 0, largest = logits[0];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            x[j] = lane + j * WARP < count ? logits[lane + j * WARP] : 0.0f;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (lane + j * WARP < count)
                largest = larger(x[j], largest);
        largest = warp_max(largest);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (lane + j * WARP < count)
                sum += x[j] = gb_exp(x[j] - largest);
        sum = warp_sum(sum);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            choice.keys[j] = lane + j * WARP < count ? probability_key(x[j] / sum) : 0;
    }

    /* Takes the largest probability that is left, the lowest expert's among equals. All lanes have the
     * result. */
    __device__ int take(float *probability) {
        uint32_t key;
        const int expert = choice.take(&key);
        *probability = probability_of_key(key);
        return expert;
    }
};

} // namespace gb_cuda

#endif
