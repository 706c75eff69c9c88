/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host says of a step of experts (GB_FUSED_EXPERTS) whatever the format of its weights.
 */
#ifndef GUMBEL_BACKENDS_CUDA_MOE_EXPERT_STEP_CUH
#define GUMBEL_BACKENDS_CUDA_MOE_EXPERT_STEP_CUH

#include "backends/cuda/moe/expert_values.cuh"

namespace gb_cuda {

inline bool has_shared(const gb_cuda_problem *problem) {
    return problem->parts[GB_EXPERTS_SHARED] != NULL;
}

/* Experts of a token. */
inline size_t count_of(const gb_cuda_problem *problem) {
    return problem->parts[GB_EXPERTS_ROUTE]->results[0]->dims[1] + (has_shared(problem) ? 1 : 0);
}

inline size_t tokens_of(const gb_cuda_problem *problem) {
    return problem->parts[GB_EXPERTS_ROUTE]->results[0]->dims[0];
}

/* A clamped SwiGLU is no activation of gates alone. */
inline bool is_clamped(const gb_cuda_problem *problem) {
    return problem->parts[GB_EXPERTS_ACTIVATION] == NULL;
}

inline bool is_gelu(const gb_cuda_problem *problem) {
    return problem->parts[GB_EXPERTS_ACTIVATION]->node->op == GB_OP_GELU_TANH;
}

/* The part whose result is the step's. */
inline const gb_cuda_call *result_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *result = problem->parts[GB_EXPERTS_RESULT];
    return result ? result : problem->parts[GB_EXPERTS_COMBINE];
}

/* Whether only the last part's result is read by others. */
inline bool has_one_result(const gb_cuda_problem *problem) {
    return problem->live ==
           1u << (problem->parts[GB_EXPERTS_RESULT] ? GB_EXPERTS_RESULT : GB_EXPERTS_COMBINE);
}

/* Whether it is a decode step whose choice, and the last result alone, two launches can have. */
inline bool supports_choice(const gb_cuda_problem *problem) {
    const gb_cuda_call *route = problem->parts[GB_EXPERTS_ROUTE];
    const gb_cuda_tensor *scales = problem->operands[GB_EXPERTS_SCALES];
    return !gb_cuda_is_prompt(route) && problem->operands[GB_EXPERTS_X]->rank == 2 &&
           route->results[0]->dims[1] <= MOST_CHOICES && has_one_result(problem) &&
           (!scales || (scales->dtype != GB_QUANTIZED && gb_cuda_elements(scales) == scales->dims[0]));
}

/* One token's experts are found by all blocks at once, those of several by a launch before. */
inline bool chooses_in_blocks(const gb_cuda_problem *problem) {
    return tokens_of(problem) == 1 && problem->operands[GB_EXPERTS_LOGITS]->dims[1] <= BLOCK_EXPERTS;
}

inline expert_values values_of(const gb_cuda_problem *problem) {
    const gb_cuda_call *route = problem->parts[GB_EXPERTS_ROUTE];
    const size_t tokens = tokens_of(problem), count = count_of(problem),
                 size = problem->operands[GB_EXPERTS_DOWN_WEIGHT]->dims[2];
    expert_values v = {};
    v.inner = reinterpret_cast<float *>(route->scratch->bytes);
    v.weights = v.inner + tokens * count * size;
    v.experts = reinterpret_cast<int32_t *>(v.weights + tokens * count);
    v.choices = (uint32_t)route->results[0]->dims[1];
    v.count = (uint32_t)count;
    v.size = (uint32_t)size;
    return v;
}

/* The choice of the first launch; where it does not find the experts itself, the launch that does is added.
 */
inline expert_choice choice_of(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *const *operands = problem->operands;
    const gb_cuda_call *route = problem->parts[GB_EXPERTS_ROUTE];
    expert_choice c = {};
    c.experts = (uint32_t)operands[GB_EXPERTS_LOGITS]->dims[1];
    c.normalized = gb_node_int(route->node, GB_ATTRIBUTE_NORMALIZE) != 0;
    if (chooses_in_blocks(problem)) {
        c.logits = data_of<const float>(operands[GB_EXPERTS_LOGITS]);
    } else {
        gb_cuda_route_top_k(route);
        c.chosen = data_of<const int32_t>(route->results[0]);
        c.chosen_weights = data_of<const float>(route->results[1]);
    }
    if (operands[GB_EXPERTS_SCALES]) {
        c.scales = operands[GB_EXPERTS_SCALES]->data;
        c.scale_dtype = operands[GB_EXPERTS_SCALES]->dtype;
    }
    if (has_shared(problem))
        c.shared_logit = data_of<const float>(operands[GB_EXPERTS_SHARED_LOGIT]);
    c.to = values_of(problem);
    return c;
}

} // namespace gb_cuda

#endif
