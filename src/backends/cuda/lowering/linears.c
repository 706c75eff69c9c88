/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of products y = x * weight^T, of one matrix or of several of the same x.
 */
#include "backends/cuda/lowering/kernels.h"

static const gb_cuda_tensor *weight_of(const gb_cuda_problem *problem) {
    return problem->parts[0]->operands[1];
}

/* Whether all products are taken, and each can be of one launch with the first. */
static bool all_are(const gb_cuda_problem *problem, bool (*is_taken)(const gb_cuda_call *call),
                    bool (*joins)(const gb_cuda_call *call, const gb_cuda_call *other)) {
    for (uint32_t i = 0; i < problem->count; i++)
        if (!is_taken(problem->parts[i]) || (i > 0 && joins && !joins(problem->parts[0], problem->parts[i])))
            return false;
    return problem->count <= GB_CUDA_MOST_JOINED;
}

static bool is_packed_decode(const gb_cuda_call *call) {
    return call->operands[1]->is_packed && !call->is_prefill;
}

static bool takes_few(const gb_cuda_problem *problem) {
    return all_are(problem, is_packed_decode, gb_cuda_linear_joins);
}
static void launch_few(const gb_cuda_problem *problem) {
    gb_cuda_few_linears(problem->parts, problem->count);
}
static uint64_t few_scratch(const gb_cuda_problem *problem) {
    return gb_cuda_linear_scratch(problem->parts[0]);
}

static bool takes_dense_few(const gb_cuda_problem *problem) {
    return all_are(problem, gb_cuda_takes_dense_few, NULL);
}
static void launch_dense_few(const gb_cuda_problem *problem) {
    gb_cuda_dense_few(problem->parts, problem->count);
}

static bool takes_dense_rows(const gb_cuda_problem *problem) {
    return all_are(problem, gb_cuda_takes_dense_rows, gb_cuda_dense_rows_join);
}
static void launch_dense_rows(const gb_cuda_problem *problem) {
    gb_cuda_dense_rows(problem->parts, problem->count);
}

static bool takes_dense_prompt(const gb_cuda_problem *problem) {
    return all_are(problem, gb_cuda_takes_dense_prompt, NULL);
}
static void launch_dense_prompt(const gb_cuda_problem *problem) {
    gb_cuda_dense_prompt(problem->parts, problem->count);
}

static bool takes_prefill(const gb_cuda_problem *problem) {
    return problem->count == 1 && gb_cuda_takes_prefill(problem->parts[0], weight_of(problem));
}
static void launch_prefill(const gb_cuda_problem *problem) {
    gb_cuda_linear_prefill(problem->parts[0]);
}

static bool takes_quantized(const gb_cuda_problem *problem) {
    return problem->count == 1 && weight_of(problem)->dtype == GB_QUANTIZED;
}
static void launch_quantized(const gb_cuda_problem *problem) {
    gb_cuda_linear_quantized(problem->parts[0]);
}

static bool takes_dense_prefill(const gb_cuda_problem *problem) {
    return problem->count == 1 && problem->parts[0]->is_prefill;
}
static void launch_dense_prefill(const gb_cuda_problem *problem) {
    gb_cuda_dense_prefill(problem->parts[0]);
}

static bool takes_one(const gb_cuda_problem *problem) {
    return problem->count == 1;
}
static void launch_dense(const gb_cuda_problem *problem) {
    gb_cuda_linear_dense(problem->parts[0]);
}

static const gb_cuda_kernel kernels[] = {
    {"linear_few", takes_few, launch_few, few_scratch, NULL, true},
    {"linear_dense_few", takes_dense_few, launch_dense_few, NULL, NULL, false},
    {"linear_dense_rows", takes_dense_rows, launch_dense_rows, NULL, NULL, false},
    {"linear_dense_prompt", takes_dense_prompt, launch_dense_prompt, NULL, NULL, false},
    {"linear_prefill", takes_prefill, launch_prefill, NULL, NULL, true},
    {"linear_quantized", takes_quantized, launch_quantized, NULL, NULL, true},
    {"linear_dense_prefill", takes_dense_prefill, launch_dense_prefill, NULL, NULL, false},
    {"linear_dense", takes_one, launch_dense, NULL, NULL, false},
};

const gb_cuda_registry gb_cuda_linear_kernels = {kernels, sizeof kernels / sizeof *kernels};
