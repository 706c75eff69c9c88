/* SPDX-License-Identifier: Apache-2.0
 *
 * A token's experts: the softmax over a row of logits, and the largest of its probabilities. A warp has the
 * row in registers, expert i in lane i % 32.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ROUTING_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ROUTING_CUH

#include "run/cuda/device/select.cuh"

namespace gb_cuda {

/* The lane's experts are lane, lane + 32, .. below count, at most EACH of them. */
template <int EACH>
struct routing {
    /* What orders them: the bits of a probability and 1, NaN above all others; 0: none, or it was taken. */
    uint32_t keys[EACH];

    __device__ static uint32_t key_of(float p) {
        return p == p ? gb_float_bits(p) + 1 : 0x7f800002u;
    }
    __device__ static float of_key(uint32_t key) {
        return key > 0x7f800001u ? gb_float_from_bits(0x7fc00000u) : gb_float_from_bits(key - 1);
    }

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
            keys[j] = lane + j * WARP < count ? key_of(x[j] / sum) : 0;
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
        *probability = of_key(most);
        return (int)expert;
    }
};

} // namespace gb_cuda

#endif
