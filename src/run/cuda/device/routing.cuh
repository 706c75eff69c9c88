/* SPDX-License-Identifier: Apache-2.0
 *
 * A token's experts: the softmax over a row of logits, and the largest of its probabilities. Of up to
 * BLOCK_EXPERTS a block of threads has one each: that is little code, which is fetched anew in every launch.
 * Of more a warp has the row in registers, expert i in lane i % 32. Both add in the same order.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ROUTING_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ROUTING_CUH

#include "run/cuda/device/select.cuh"

namespace gb_cuda {

enum { BLOCK_EXPERTS = 8 * WARP, MOST_BLOCK_CHOICES = 8 };

/* What orders probabilities: their bits and 1, NaN above all others; 0: none, or it was taken. */
__device__ inline uint32_t probability_key(float p) {
    return p == p ? gb_float_bits(p) + 1 : 0x7f800002u;
}
__device__ inline float probability_of_key(uint32_t key) {
    return key > 0x7f800001u ? gb_float_from_bits(0x7fc00000u) : gb_float_from_bits(key - 1);
}

/* Memory of choose_in_block. */
struct block_routing {
    float values[BLOCK_EXPERTS], maxima[BLOCK_EXPERTS / WARP];
    uint32_t keys[BLOCK_EXPERTS / WARP * MOST_BLOCK_CHOICES],
        experts[BLOCK_EXPERTS / WARP * MOST_BLOCK_CHOICES];
};

/* The lane-th expert of a token and its probability; sum: of all that are chosen. */
struct chosen_expert {
    int expert;
    float probability, sum;
};

/* Thread i's probability of expert i as a key. BLOCK_EXPERTS threads call it. */
__device__ inline uint32_t softmax_in_block(const float *logits, uint32_t count, block_routing &memory) {
    const uint32_t i = threadIdx.x, lane = i % WARP;
    const float x = i < count ? logits[i] : gb_float_from_bits(0xff800000u);
    const float of_warp = warp_max(x);
    if (lane == 0)
        memory.maxima[i / WARP] = of_warp;
    __syncthreads();
    float largest = memory.maxima[0], sum = 0;
    for (uint32_t w = 1; w < BLOCK_EXPERTS / WARP; w++)
        largest = larger(memory.maxima[w], largest);
    const float e = i < count ? gb_exp(x - largest) : 0.0f;
    memory.values[i] = e;
    __syncthreads();
    for (uint32_t j = lane; j < BLOCK_EXPERTS; j += WARP)
        sum += memory.values[j];
    sum = warp_sum(sum);
    return i < count ? probability_key(e / sum) : 0;
}

/* The largest probabilities, the lowest expert's first among equals, in every warp: choices of up to
 * MOST_BLOCK_CHOICES. Each warp lists its own, then all go through the lists. */
__device__ inline chosen_expert choose_in_block(const float *logits, uint32_t count, uint32_t choices,
                                                block_routing &memory) {
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint32_t key = softmax_in_block(logits, count, memory);
    uint32_t listed = 0, expert = 0;
#pragma unroll 1
    for (uint32_t t = 0; t < choices; t++) {
        const uint32_t most = largest_in_warp(key);
        const uint32_t winner = (uint32_t)__ffs((int)__ballot_sync(0xffffffffu, key == most)) - 1;
        listed = lane == t ? most : listed;
        expert = lane == t ? warp * WARP + winner : expert;
        key = lane == winner ? 0 : key;
    }
    if (lane < MOST_BLOCK_CHOICES) {
        memory.keys[warp * MOST_BLOCK_CHOICES + lane] = listed;
        memory.experts[warp * MOST_BLOCK_CHOICES + lane] = expert;
    }
    __syncthreads();
    uint32_t first = memory.keys[lane], second = memory.keys[lane + WARP];
    const uint32_t first_expert = memory.experts[lane], second_expert = memory.experts[lane + WARP];
    chosen_expert mine = {0, 0, 0};
#pragma unroll 1
    for (uint32_t t = 0; t < choices; t++) {
        const uint32_t most = largest_in_warp(first > second ? first : second);
        const uint32_t firsts = __ballot_sync(0xffffffffu, first == most),
                       seconds = __ballot_sync(0xffffffffu, second == most);
        const uint32_t winner = (uint32_t)__ffs((int)(firsts ? firsts : seconds)) - 1;
        const uint32_t taken = __shfl_sync(0xffffffffu, firsts ? first_expert : second_expert, (int)winner);
        const float probability = probability_of_key(most);
        first = lane == winner && firsts ? 0 : first;
        second = lane == winner && !firsts ? 0 : second;
        mine.sum += probability;
        mine.expert = lane == t ? (int)taken : mine.expert;
        mine.probability = lane == t ? probability : mine.probability;
    }
    return mine;
}

/* The lane's experts are lane, lane + 32, .. below count, at most EACH of them. */
template <int EACH>
struct warp_routing {
    uint32_t keys[EACH];

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
            keys[j] = lane + j * WARP < count ? probability_key(x[j] / sum) : 0;
    }

    /* Takes the largest probability that is left, the lowest expert's among equals. All lanes have the
     * result. */
    __device__ int take(float *probability) {
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
        *probability = probability_of_key(most);
        return (int)expert;
    }
};

} // namespace gb_cuda

#endif
