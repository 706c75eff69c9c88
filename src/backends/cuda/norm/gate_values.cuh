/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of gates (gate_chain.cu): an activation of one tensor times another, or of both, each with
 * the biases of the experts that its rows are of; or of one alone.
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_GATE_VALUES_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_GATE_VALUES_CUH

#include "backends/cuda/norm/long_rows.cuh"
#include "backends/cuda/norm/row_chain.cuh"

namespace gb_cuda {

/* [experts, columns of a row] */
struct gate_bias {
    const void *weight; /* or NULL */
    gb_dtype dtype;
};

/* Of CLAMPED_SWIGLU alone. */
struct clamped_gate {
    gate_bias x, other;
    const int32_t *experts; /* [rows of the product] */
    float alpha, limit;
};

template <chain_kind KIND>
__device__ constexpr bool has_other() {
    return KIND != CHAIN_RELU_SQUARED;
}

template <chain_kind KIND>
__device__ inline float gate_value(const clamped_gate &c, float x, float other) {
    if constexpr (KIND == CHAIN_CLAMPED_SWIGLU)
        return clamped_swiglu(x, other, c.alpha, c.limit);
    if constexpr (KIND == CHAIN_RELU_SQUARED)
        return relu_squared(x);
    return (KIND == CHAIN_GELU ? gelu_tanh(x) : KIND == CHAIN_SILU ? silu(x) : sigmoid(x)) * other;
}

template <int EACH, typename Element>
__device__ inline void add_weights(const gate_bias &bias, size_t first, float v[EACH]) {
    weight_part<EACH, Element> part;
    part.load(static_cast<const Element *>(bias.weight) + first, 0);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] += part.at(i);
}

/* Adds an expert's elements from `first` on, a multiple of EACH. */
template <int EACH>
__device__ inline void add_bias(const gate_bias &bias, size_t first, float v[EACH]) {
    if constexpr (EACH == 2)
        v[0] += load_float(bias.weight, bias.dtype, first),
            v[1] += load_float(bias.weight, bias.dtype, first + 1);
    else if (bias.dtype == GB_BF16)
        add_weights<EACH, uint16_t>(bias, first, v);
    else
        add_weights<EACH, float>(bias, first, v);
}

/* What both biases add to that row of the product, from a column on. */
template <chain_kind KIND, int EACH>
__device__ inline void add_biases(const clamped_gate &c, size_t number, unsigned columns, unsigned column,
                                  float x[EACH], float other[EACH]) {
    if (KIND != CHAIN_CLAMPED_SWIGLU || !c.experts)
        return;
    const size_t first = (size_t)c.experts[number] * columns + column;
    if (c.x.weight)
        add_bias<EACH>(c.x, first, x);
    if (c.other.weight)
        add_bias<EACH>(c.other, first, other);
}

/* ---- From a step to a gate ----------------------------------------------------------------------------- */

inline gate_bias bias_of(const gb_cuda_call *biased) {
    gate_bias bias = {};
    if (biased) {
        bias.weight = biased->operands[1]->data;
        bias.dtype = biased->operands[1]->dtype;
    }
    return bias;
}

inline clamped_gate clamped_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *result = problem->parts[GB_GATED_RESULT], *x = problem->parts[GB_GATED_X_BIASED],
                       *other = problem->parts[GB_GATED_OTHER_BIASED];
    clamped_gate c = {};
    if (result->node->op != GB_OP_CLAMPED_SWIGLU)
        return c;
    c.x = bias_of(x);
    c.other = bias_of(other);
    c.experts = x || other ? data_of<const int32_t>((x ? x : other)->operands[2]) : nullptr;
    c.alpha = (float)gb_node_float(result->node, GB_ATTRIBUTE_ALPHA);
    c.limit = (float)gb_node_float(result->node, GB_ATTRIBUTE_LIMIT);
    return c;
}

inline bool has_biases(const gb_cuda_problem *problem) {
    return problem->parts[GB_GATED_X_BIASED] || problem->parts[GB_GATED_OTHER_BIASED];
}

inline bool is_loadable(const gate_bias &bias) {
    return !bias.weight || (is_aligned(bias.weight) && (bias.dtype == GB_BF16 || bias.dtype == GB_F32));
}

} // namespace gb_cuda

#endif
