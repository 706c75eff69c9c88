/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of ops on rows, for kernels of one op (elementwise.cu, rows.cu) and of several
 * (row_chain.cu).
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_ROW_OPS_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_ROW_OPS_CUH

#include "backends/cuda/device/quick_math.cuh"

namespace gb_cuda {

/* Norms of longer rows are a block's, of NORM_THREADS; those of others a warp's. */
enum { LONGEST_WARP_ROW = 512, NORM_THREADS = 1024 };

/* x / 2 * (1 + tanh(u)) = x / (1 + e^-2u) with u = sqrt(2 / pi) * (x + 0.044715 x^3). */
__device__ inline float gelu_tanh(float x) {
    constexpr float of_x = -0x1.988454p+0f * LOG2_E, of_cube = 0.044715f * of_x;
    return logistic_product(x, x * fmaf(x * x, of_cube, of_x));
}

__device__ inline float silu(float x) {
    return logistic_product(x, -LOG2_E * x);
}

__device__ inline float clamped_swiglu(float gate, float up, float alpha, float limit) {
    const float g = gate > limit ? limit : gate, below = up > limit ? limit : up;
    const float u = below < -limit ? -limit : below;
    return logistic_product(g, -LOG2_E * (alpha * g)) * (u + 1.0f);
}

__device__ inline float sigmoid(float x) {
    return logistic_product(1.0f, -LOG2_E * x);
}

__device__ inline float relu_squared(float x) {
    return x < 0.0f ? 0.0f : x * x;
}

/* log(1 + e^x), with the rounding of 1 + e undone. (Kahan's log1p) */
__device__ inline float softplus(float x) {
    const float magnitude = x < 0.0f ? -x : x, e = gb_exp(-magnitude), rounded = 1.0f + e;
    const float quotient = gb_log(rounded) * (e / (rounded == 1.0f ? 1.0f : rounded - 1.0f));
    return (x > 0.0f ? x : 0.0f) + (rounded == 1.0f ? e : quotient);
}

__device__ inline float delta_log_decay(float x, float a_log, float bias) {
    return -(gb_exp(a_log) * softplus(x + bias));
}

__device__ inline float delta_decay(float x, float a_log, float bias) {
    return gb_exp(delta_log_decay(x, a_log, bias));
}

/* y = x * factor * (weight_offset + weight); factor = scale / sqrt(sum of squares * share + epsilon). */
struct normalization {
    const void *weight; /* or NULL */
    gb_dtype dtype;
    size_t size;
    float share, epsilon, scale, weight_offset; /* share: of a square in the mean, or 1 */
};

/* That of a call of rms_norm or l2_normalize. */
inline normalization normalization_of(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1];
    const bool is_mean = call->node->op == GB_OP_RMS_NORM;
    normalization n = {};
    n.size = x->dims[x->rank - 1];
    n.weight = is_mean && weight ? weight->data : nullptr;
    n.dtype = n.weight ? weight->dtype : GB_F32;
    n.share = is_mean ? 1.0f / (float)n.size : 1.0f;
    n.epsilon = (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON);
    n.scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    n.weight_offset = is_mean ? (float)gb_node_float(call->node, GB_ATTRIBUTE_WEIGHT_OFFSET) : 0.0f;
    return n;
}

__device__ inline float norm_factor(const normalization &n, float sum_of_squares) {
    return n.scale * inverse_root(fmaf(sum_of_squares, n.share, n.epsilon));
}

/* The sum of squares of a long row, in every thread of a block of whole warps. A thread adds every
 * NORM_THREADS-th piece of norm_piece(size) neighbouring columns, in order. partial: WARP floats of shared
 * memory, free before, and after once all threads have passed. */
__host__ __device__ constexpr unsigned norm_piece(unsigned size) {
    return size <= 4 * NORM_THREADS ? 4 : 8;
}

__device__ inline float norm_sum(float value, float *partial) {
    const unsigned lane = threadIdx.x % WARP;
    value = warp_sum(value);
    if (lane == 0)
        partial[threadIdx.x / WARP] = value;
    __syncthreads();
    return warp_sum(lane < blockDim.x / WARP ? partial[lane] : 0.0f);
}

__device__ inline float normalized(const normalization &n, float x, float factor, size_t i) {
    const float value = x * factor;
    return n.weight ? value * (n.weight_offset + load_float(n.weight, n.dtype, i)) : value;
}

} // namespace gb_cuda

#endif
