/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching calls as a plan's steps are: by the kernel that their registry chooses.
 */
#ifndef GUMBEL_TESTS_CUDA_LAUNCHING_H
#define GUMBEL_TESTS_CUDA_LAUNCHING_H

#include "cuda/device_memory.h"

/* The kernel of calls that are launched together; the test fails where there is none. */
static inline const gb_cuda_kernel *kernel_from(const gb_cuda_registry *registry,
                                                const gb_cuda_problem *problem) {
    const gb_cuda_kernel *kernel = gb_cuda_choose_from(registry, problem);
    assert_non_null(kernel);
    return kernel;
}

static inline void launch_from(const gb_cuda_registry *registry, const gb_cuda_call *call) {
    const gb_cuda_problem problem = {.operands = call->operands, .parts = &call, .count = 1, .live = 1};
    kernel_from(registry, &problem)->launch(&problem);
}

/* Bytes of scratch that a call takes. */
static inline size_t scratch_from(const gb_cuda_registry *registry, const gb_cuda_call *call) {
    const gb_cuda_problem problem = {.operands = call->operands, .parts = &call, .count = 1, .live = 1};
    const gb_cuda_kernel *kernel = kernel_from(registry, &problem);
    return kernel->scratch ? (size_t)kernel->scratch(&problem) : 0;
}

/* Whether the call's kernel writes its epilogue. */
static inline bool has_epilogue(const gb_cuda_registry *registry, const gb_cuda_call *call) {
    const gb_cuda_problem problem = {.operands = call->operands, .parts = &call, .count = 1, .live = 1};
    const gb_cuda_kernel *kernel = kernel_from(registry, &problem);
    return kernel->has_epilogue && kernel->has_epilogue(&problem);
}

static inline void launch_linear(const gb_cuda_call *call) {
    launch_from(&gb_cuda_linear_kernels, call);
}
static inline void launch_expert_linear(const gb_cuda_call *call) {
    launch_from(&gb_cuda_expert_linear_kernels, call);
}

/* Products of one input: as few launches as a plan makes of them. */
static inline void launch_linears(const gb_cuda_call *const *calls, uint32_t count) {
    uint32_t launched = 0;
    for (uint32_t first = 0; first < count; first++) {
        const gb_cuda_call *joined[GB_CUDA_MOST_JOINED];
        gb_cuda_problem problem = {.parts = joined};
        for (uint32_t i = first; i < count; i++) {
            if (launched >> i & 1u)
                continue;
            joined[problem.count++] = calls[i];
            if (problem.count > 1 && !gb_cuda_choose_from(&gb_cuda_linear_kernels, &problem))
                problem.count--;
            else
                launched |= 1u << i;
        }
        if (problem.count > 0)
            kernel_from(&gb_cuda_linear_kernels, &problem)->launch(&problem);
    }
}

/* Launches a fused step; false: no kernel takes it. */
static inline bool launch_fused(gb_fused_kind kind, const gb_cuda_problem *problem) {
    const gb_fused fused = {.kind = kind};
    const gb_step step = {.kind = GB_STEP_FUSED, .fused = &fused};
    const gb_cuda_kernel *kernel = gb_cuda_choose(&step, problem);
    if (kernel)
        kernel->launch(problem);
    return kernel != NULL;
}

#endif
