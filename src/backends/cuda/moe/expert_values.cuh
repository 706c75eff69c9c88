/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two launches of a decode step's experts do whatever the format of the weights: they choose a
 * token's experts, hand inner values over, and join outputs.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_VALUES_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_VALUES_CUH

#include "backends/cuda/moe/routing.cuh"
#include "backends/cuda/norm/row_ops.cuh"

namespace gb_cuda {

enum { MOST_CHOICES = MOST_BLOCK_CHOICES /* of a token, beside the shared expert */ };

/* What the first launch leaves for the second one. Expert number `choices` of a token is the shared one, if
 * there is one. */
struct expert_values {
    float *inner;     /* [tokens, count, size] */
    int32_t *experts; /* [tokens, choices] */
    float *weights;   /* [tokens, count] */
    uint32_t choices, size;
    uint32_t count; /* choices, and the shared one */
};

/* Which experts tokens have, and with which weights. */
struct expert_choice {
    const float *logits;   /* [tokens, experts]; NULL: they are chosen already, */
    const int32_t *chosen; /* [tokens, choices], */
    const float *chosen_weights;
    const void *scales; /* of weights: [experts], of scale_dtype; NULL: there are none */
    gb_dtype scale_dtype;
    const float *shared_logit; /* [tokens] */
    uint32_t experts;
    bool normalized;
    expert_values to;

    /* Number `number` of the token's experts. BLOCK_EXPERTS threads call it. */
    __device__ size_t find(size_t token, uint32_t number, block_routing &memory) const {
        if (!logits)
            return (size_t)chosen[token * to.choices + number];
        choose_in_block(logits + token * experts, experts, memory);
        return memory.chosen_experts[number];
    }

    /* An expert's weight times its scale, as expert_linear has it. */
    __device__ float scaled_weight(int32_t expert, float weight) const {
        if (!scales)
            return weight;
        if (scale_dtype == GB_F32)
            return fmaf(static_cast<const float *>(scales)[expert], weight, 0.0f);
        const uint32_t bits = static_cast<const uint16_t *>(scales)[expert];
        return fmaf(scale_dtype == GB_BF16 ? low_bf16(bits) : low_half(bits), weight, 0.0f);
    }

    /* Notes all of the token's experts, where they have been found. */
    __device__ void note(size_t token, const block_routing &memory) const {
        const uint32_t t = threadIdx.x;
        const size_t at = token * to.choices + t;
        if (t >= to.choices)
            return;
        const int32_t expert = logits ? (int32_t)memory.chosen_experts[t] : chosen[at];
        const float weight = logits ? memory.weight(t, to.choices, normalized) : chosen_weights[at];
        to.experts[at] = expert;
        to.weights[token * to.count + t] = scaled_weight(expert, weight);
    }

    __device__ void note_shared(size_t token) const {
        to.weights[token * to.count + to.choices] = sigmoid(shared_logit[token]);
    }
};

/* What is added to a column of an expert's product. */
struct expert_bias {
    const void *values; /* [experts, columns]; NULL: there are none */
    gb_dtype dtype;
    uint32_t columns;

    /* Without biases -0, which leaves every sum as it is. */
    __device__ float load(size_t expert, size_t column) const {
        return values ? load_float(values, dtype, expert * columns + column) : -0.0f;
    }
};

/* Prefetches one of gridDim.x parts of memory to the L2 cache. */
__device__ inline void prefetch_part(const uint8_t *from, uint32_t bytes) {
    const uint32_t lines = (bytes + CACHE_LINE - 1) / CACHE_LINE, part = (lines + gridDim.x - 1) / gridDim.x,
                   begin = blockIdx.x * part, end = begin + part < lines ? begin + part : lines;
#pragma unroll 1
    for (uint32_t line = begin + threadIdx.x; line < end; line += blockDim.x)
        prefetch_line(from + line * CACHE_LINE);
}

/* An output from its experts' sums, `pitch` floats apart: combine_experts, scale_rows of the shared one, and
 * what both are added to. HAS_ALL: there are a shared expert and a residual. */
template <bool HAS_ALL>
__device__ inline float join_experts(const expert_values &from, const float *sums, uint32_t pitch,
                                     const float *weights, bool has_residual, float residual) {
    const uint32_t choices = from.choices;
    float sum = sums[0] * weights[0];
    for (uint32_t t = 1; t < choices; t++)
        sum += sums[t * pitch] * weights[t];
    if (HAS_ALL || from.count > choices)
        sum += sums[choices * pitch] * weights[choices];
    return HAS_ALL || has_residual ? residual + sum : sum;
}

} // namespace gb_cuda

#endif
