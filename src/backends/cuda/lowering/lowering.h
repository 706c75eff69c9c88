/* SPDX-License-Identifier: Apache-2.0
 *
 * The lowering of a program for a class of batches: a plan whose fused steps have kernels, and the kernel of
 * each step. What differs within a class is data: sizes, runs of tokens, places of states.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_LOWERING_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_LOWERING_H

#include "backends/backend.h"
#include "backends/cuda/lowering/kernels.h"
#include "backends/cuda/runtime/weights.h"
#include "backends/states/states.h"
#include "plan/plan.h"

typedef enum gb_cuda_class {
    GB_CUDA_ONE_TOKEN, /* decode of one sequence */
    GB_CUDA_DECODE,    /* decode of several */
    GB_CUDA_PREFILL,   /* prompts' tokens */
    GB_CUDA_CLASSES
} gb_cuda_class;

/* "one token" */
const char *gb_cuda_class_name(gb_cuda_class class);

/* A step of the plan and its kernel. */
typedef struct gb_cuda_launch {
    const gb_step *step;
    const gb_cuda_kernel *kernel; /* NULL: a branch or jump */
    gb_cuda_problem problem;
    gb_cuda_call *calls;       /* [problem.count], of its parts */
    gb_cuda_epilogue epilogue; /* of one of them */
} gb_cuda_launch;

typedef struct gb_cuda_lowered {
    gb_cuda_class class;
    gb_plan *plan;
    gb_cuda_tensor *tensors;  /* by value of the program */
    gb_cuda_launch *launches; /* [plan->step_count], in order */
    gb_cuda_call *calls;      /* memory of theirs */
    const gb_cuda_call **parts;
    const gb_cuda_tensor **operands;
    bool has_branches;
    uint32_t first_row; /* where its logits go, of the batch's */
} gb_cuda_lowered;

typedef struct gb_cuda_lowering_options {
    const gb_program *program;
    const gb_backend_options *backend;
    gb_cuda_class class;
    const gb_cuda_weights *weights; /* how the constants lie */
    const gb_states *states;
    gb_cuda_scratch *scratch; /* which all calls share */
    cudaStream_t stream;
} gb_cuda_lowering_options;

/* Makes the plan and chooses its kernels; allocates nothing on the device. What options point to must
 * outlive it, but for options->backend. Safe to destroy after a failure. Errors: UNSUPPORTED (a step
 * without a kernel), MEMORY, FORMAT (sizes that overflow). */
gumbel_status gb_cuda_lower(const gb_cuda_lowering_options *options, gb_cuda_lowered *lowered,
                            gumbel_error *error);
void gb_cuda_lowered_destroy(gb_cuda_lowered *lowered);

/* The sizes of a batch take the place of N and B. */
void gb_cuda_lowered_bind(gb_cuda_lowered *lowered, uint32_t tokens, uint32_t rows, const gb_cuda_runs *runs,
                          const gb_cuda_versions *versions);

/* Bytes of scratch, and of prepared rows, that the launches of the bound sizes take. */
uint64_t gb_cuda_lowered_scratch(const gb_cuda_lowered *lowered);
uint64_t gb_cuda_lowered_prepared(const gb_cuda_lowered *lowered);

#endif
