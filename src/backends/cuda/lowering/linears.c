/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of y = x * weight^T, of one matrix or of several with the same x.
 */
#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/products.h"

static const gb_cuda_tensor *weight_of(const gb_cuda_problem *problem) {
    return problem->parts[0]->operands[1];
}

/* Whether all matrices are supported, and each can share a launch with the first. */
static bool supports_all(const gb_cuda_problem *problem, bool (*is_supported)(const gb_cuda_call *call),
                         bool (*joins)(const gb_cuda_call *call, const gb_cuda_call *other)) {
    for (uint32_t i = 0; i < problem->count; i++)
        if (!is_supported(problem->parts[i]) ||
            (i > 0 && joins && !joins(problem->parts[0], problem->parts[i])))
            return false;
    return problem->count <= GB_CUDA_MOST_JOINED;
}

/* ---- Inputs in 8 bits per row -------------------------------------------------------------------------- */

/* Whether a row that is rounded for one is rounded for the other. */
static bool shares_int8_rows(const gb_cuda_call *call, const gb_cuda_call *other) {
    return gb_node_int(call->node, GB_ATTRIBUTE_ROTATION) == gb_node_int(other->node, GB_ATTRIBUTE_ROTATION);
}

static bool supports_wgmma_int8(const gb_cuda_problem *problem) {
    return supports_all(problem, gb_cuda_supports_wgmma_int8, gb_cuda_packed_int8_joins);
}
static bool supports_mma_int8(const gb_cuda_problem *problem) {
    return supports_all(problem, gb_cuda_supports_mma_int8, gb_cuda_packed_int8_joins);
}
static bool supports_gemv_int8(const gb_cuda_problem *problem) {
    return gb_cuda_has_few_rows(problem->parts[0]) && supports_wgmma_int8(problem);
}
static bool supports_int8(const gb_cuda_problem *problem) {
    return supports_all(problem, gb_cuda_supports_canonical_int8, shares_int8_rows);
}

/* A launch each, of one rounded input. */
static void describe_each(const gb_cuda_problem *problem, void (*describe)(const gb_cuda_call *call)) {
    for (uint32_t i = 0; i < problem->count; i++) {
        gb_cuda_call call = *problem->parts[i];
        call.prepares_input = call.prepares_input && i == 0;
        describe(&call);
    }
}

static void describe_int8(const gb_cuda_problem *problem) {
    describe_each(problem, gb_cuda_gemm_int8);
}

static bool is_int8(const gb_cuda_call *call) {
    return call->node && gb_cuda_is_int8_per_token(call->node);
}

/* ---- Other inputs -------------------------------------------------------------------------------------- */

static bool is_packed_decode(const gb_cuda_call *call) {
    return call->operands[1]->is_packed && !gb_cuda_is_prompt(call) && !is_int8(call);
}

static bool supports_gemv(const gb_cuda_problem *problem) {
    return supports_all(problem, is_packed_decode, gb_cuda_gemv_joins);
}

static bool supports_gemv_small(const gb_cuda_problem *problem) {
    return supports_all(problem, gb_cuda_supports_gemv_small, NULL);
}

static bool supports_gemv_bf16(const gb_cuda_problem *problem) {
    return supports_all(problem, gb_cuda_supports_gemv_bf16, gb_cuda_gemv_bf16_joins);
}

static bool supports_gemm_bf16(const gb_cuda_problem *problem) {
    return supports_all(problem, gb_cuda_supports_gemm_bf16, NULL);
}

static bool supports_wgmma(const gb_cuda_problem *problem) {
    return problem->count == 1 && gb_cuda_supports_wgmma(problem->parts[0], weight_of(problem));
}

/* Whether no other kernel has a quantized matrix. */
static bool has_no_other(const gb_cuda_call *call) {
    return call->operands[1]->dtype == GB_QUANTIZED && !is_packed_decode(call) && !is_int8(call) &&
           !gb_cuda_supports_wgmma(call, call->operands[1]);
}

static bool supports_gemm_quantized(const gb_cuda_problem *problem) {
    return supports_all(problem, has_no_other, NULL);
}
static void describe_gemm_quantized(const gb_cuda_problem *problem) {
    describe_each(problem, gb_cuda_gemm_quantized);
}

static bool is_few(const gb_cuda_call *call) {
    return has_no_other(call) &&
           (gb_cuda_has_few_rows(call) || gb_cuda_all_outputs(call->operands[1]) <= GB_FRAGMENT_ROWS);
}
static bool supports_gemv_quantized(const gb_cuda_problem *problem) {
    return supports_all(problem, is_few, NULL);
}
static void describe_gemv_quantized(const gb_cuda_problem *problem) {
    describe_each(problem, gb_cuda_gemv_quantized);
}

static bool supports_gemm_float(const gb_cuda_problem *problem) {
    return problem->count == 1 && gb_cuda_is_prompt(problem->parts[0]);
}

static bool supports_one(const gb_cuda_problem *problem) {
    return problem->count == 1;
}

static const gb_cuda_kernel kernels[] = {
    {"gemv_int8_row", gb_cuda_supports_gemv_int8_row, gb_cuda_gemv_int8_row, NULL, NULL, NULL, true, false},
    {"gemv_int8", supports_gemv_int8, gb_cuda_gemv_int8, NULL, NULL, gb_cuda_first_input_by_lanes, true,
     true},
    {"gemm_wgmma_int8", supports_wgmma_int8, gb_cuda_gemm_wgmma_int8, gb_cuda_gemm_wgmma_int8_scratch, NULL,
     gb_cuda_first_input_swizzled, true, true},
    {"gemm_mma_int8", supports_mma_int8, gb_cuda_gemm_mma_int8, NULL, NULL, gb_cuda_first_input_by_lanes,
     true, false},
    {"gemm_int8", supports_int8, describe_int8, NULL, NULL, gb_cuda_first_input_swizzled, false, false},
    {"gemv", supports_gemv, gb_cuda_gemv, gb_cuda_gemv_scratch, NULL, gb_cuda_first_input, true, false},
    {"gemv_small", supports_gemv_small, gb_cuda_gemv_small, NULL, NULL, NULL, false, false},
    {"gemv_bf16", supports_gemv_bf16, gb_cuda_gemv_bf16, NULL, NULL, NULL, false, false},
    {"gemm_bf16", supports_gemm_bf16, gb_cuda_gemm_bf16, NULL, NULL, NULL, false, false},
    {"gemm_wgmma", supports_wgmma, gb_cuda_gemm_wgmma, NULL, NULL, gb_cuda_first_input, true, false},
    {"gemv_quantized", supports_gemv_quantized, describe_gemv_quantized, NULL, NULL, gb_cuda_first_input,
     false, false},
    {"gemm_quantized", supports_gemm_quantized, describe_gemm_quantized, NULL, NULL, gb_cuda_first_input,
     false, false},
    {"gemm_float", supports_gemm_float, gb_cuda_gemm_float, NULL, NULL, NULL, false, false},
    {"gemv_float", supports_one, gb_cuda_gemv_float, NULL, NULL, NULL, false, false},
};

const gb_cuda_registry gb_cuda_linear_kernels = {kernels, sizeof kernels / sizeof *kernels};
