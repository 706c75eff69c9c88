/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching calls as a plan's steps are, by the kernel that their registry chooses.
 */
#ifndef GUMBEL_TESTS_CUDA_LAUNCHING_H
#define GUMBEL_TESTS_CUDA_LAUNCHING_H

#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/products.h"
#include "cuda/device_memory.h"

/* A problem with calls of its own, which have a list of launches. */
typedef struct test_problem {
    gb_cuda_problem problem;
    gb_cuda_call calls[GB_MAX_FUSED_NODES];
    const gb_cuda_call *parts[GB_MAX_FUSED_NODES];
    gb_cuda_prepared input; /* of its products */
    gb_cuda_launch_list launches;
} test_problem;

/* Of prompts where it says so; how many rows it has is counted. */
static inline gb_cuda_row_class row_class_of(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    return gb_cuda_row_class_of(gb_cuda_is_prompt(call), x ? x->dims[0] : 1);
}

static inline test_problem *new_problem(const gb_cuda_problem *of) {
    test_problem *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->problem = *of;
    t->problem.parts = t->parts;
    for (uint32_t i = 0; i < of->count; i++) {
        if (!of->parts[i])
            continue;
        gb_cuda_call *call = &t->calls[i];
        *call = *of->parts[i];
        call->launches = &t->launches;
        call->row_class = row_class_of(call);
        t->parts[i] = call;
    }
    return t;
}

static inline void free_problem(test_problem *t) {
    assert_cuda(cudaFree(t->input.data)); /* waits for the device */
    gb_cuda_launch_list_destroy(&t->launches);
    free(t);
}

/* Has the products' input prepared as the kernel wants it, unless the calls have one. */
static inline void prepare_input(test_problem *t, const gb_cuda_kernel *kernel) {
    if (!kernel->input)
        return;
    t->input = kernel->input(&t->problem);
    t->input.data = device_copy(NULL, (size_t)gb_cuda_prepared_size(&t->input));
    for (uint32_t i = 0; i < t->problem.count; i++) {
        t->calls[i].input = &t->input;
        t->calls[i].prepares_input = true;
    }
}

/* Describes the launches, enqueues them and frees the problem. */
static inline void run_problem(test_problem *t, const gb_cuda_kernel *kernel) {
    prepare_input(t, kernel);
    kernel->describe(&t->problem);
    assert_cuda(gb_cuda_launch_list_run(&t->launches, NULL));
    free_problem(t);
}

/* Launches what an op's function describes. */
static inline void run_op(void (*describe)(const gb_cuda_call *call), const gb_cuda_call *of) {
    gb_cuda_launch_list launches = {0};
    gb_cuda_call call = *of;
    call.launches = &launches;
    call.row_class = row_class_of(of);
    describe(&call);
    assert_cuda(gb_cuda_launch_list_run(&launches, NULL));
    gb_cuda_launch_list_destroy(&launches);
}

/* The kernel of calls that are launched together; the test fails where there is none. */
static inline const gb_cuda_kernel *kernel_from(const gb_cuda_registry *registry, const test_problem *t) {
    const gb_cuda_kernel *kernel = gb_cuda_choose_from(registry, &t->problem);
    assert_non_null(kernel);
    return kernel;
}

static inline void launch_problem(const gb_cuda_registry *registry, const gb_cuda_problem *problem) {
    test_problem *t = new_problem(problem);
    run_problem(t, kernel_from(registry, t));
}

static inline gb_cuda_problem problem_of_call(const gb_cuda_call *const *call) {
    return (gb_cuda_problem){.operands = (*call)->operands, .parts = call, .count = 1, .live = 1};
}

static inline void launch_from(const gb_cuda_registry *registry, const gb_cuda_call *call) {
    const gb_cuda_problem problem = problem_of_call(&call);
    launch_problem(registry, &problem);
}

/* Bytes of scratch that a call takes. */
static inline size_t scratch_from(const gb_cuda_registry *registry, const gb_cuda_call *call) {
    const gb_cuda_problem problem = problem_of_call(&call);
    test_problem *t = new_problem(&problem);
    const gb_cuda_kernel *kernel = kernel_from(registry, t);
    const size_t bytes = kernel->scratch ? (size_t)kernel->scratch(&t->problem) : 0;
    free_problem(t);
    return bytes;
}

/* Whether the call's kernel writes its epilogue. */
static inline bool has_epilogue(const gb_cuda_registry *registry, const gb_cuda_call *call) {
    const gb_cuda_problem problem = problem_of_call(&call);
    test_problem *t = new_problem(&problem);
    const gb_cuda_kernel *kernel = kernel_from(registry, t);
    const bool has = kernel->has_epilogue && kernel->has_epilogue(&t->problem);
    free_problem(t);
    return has;
}

static inline void launch_linear(const gb_cuda_call *call) {
    launch_from(&gb_cuda_linear_kernels, call);
}
static inline void launch_expert_linear(const gb_cuda_call *call) {
    launch_from(&gb_cuda_expert_linear_kernels, call);
}

static inline bool has_kernel(const gb_cuda_registry *registry, const gb_cuda_problem *problem) {
    test_problem *t = new_problem(problem);
    const bool has = gb_cuda_choose_from(registry, &t->problem) != NULL;
    free_problem(t);
    return has;
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
            if (problem.count > 1 && !has_kernel(&gb_cuda_linear_kernels, &problem))
                problem.count--;
            else
                launched |= 1u << i;
        }
        if (problem.count > 0)
            launch_problem(&gb_cuda_linear_kernels, &problem);
    }
}

/* Launches a fused step; false: no kernel takes it. */
static inline bool launch_fused(gb_fused_kind kind, const gb_cuda_problem *problem) {
    const gb_fused fused = {.kind = kind};
    const gb_step step = {.kind = GB_STEP_FUSED, .fused = &fused};
    test_problem *t = new_problem(problem);
    const gb_cuda_kernel *kernel = gb_cuda_choose(&step, &t->problem);
    if (kernel)
        run_problem(t, kernel);
    else
        free_problem(t);
    return kernel != NULL;
}

#endif
