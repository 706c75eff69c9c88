/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch lists of a program with their memory on the device, one for each class of batches (lowering.h).
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_LAUNCHES_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_LAUNCHES_H

#include "backends/backend.h"
#include "backends/cuda/lowering/lowering.h"
#include "backends/cuda/runtime/graphs.h"
#include "backends/cuda/runtime/inputs.h"
#include "backends/cuda/runtime/slots.h"

/* What steps work with. */
typedef struct gb_cuda_resources {
    const gb_program *program;
    const gb_backend_options *backend;
    gb_cuda_slots *slots;
    const gb_cuda_weights *weights;
    cudaStream_t stream;
} gb_cuda_resources;

/* What differs from step to step. */
typedef struct gb_cuda_step_sizes {
    uint32_t tokens, rows;
    uint32_t first_row; /* which of the batch's rows its first one is: where its logits go */
    bool is_prefill;
    gb_cuda_runs runs;
    gb_cuda_versions versions;
} gb_cuda_step_sizes;

typedef struct gb_cuda_launches {
    const gb_program *program;
    cudaStream_t stream;
    gb_cuda_lowered of[GB_CUDA_CLASSES]; /* those of classes that the engine lacks are zeros */
    gb_cuda_lowered *bound;              /* one of those */
    gb_cuda_scratch scratch;
    uint8_t *arena;  /* of the values of any class */
    float *logits;   /* of the batch, in managed memory; NULL: the program has none */
    bool *condition; /* of a branch, in pinned memory of the host */
    gb_cuda_step_sizes sizes;
    gumbel_profile_callback profile;
    void *profile_user;
    cudaEvent_t begin, end; /* of a timed launch */
} gb_cuda_launches;

/* Makes the lists and reserves all that they need. What resources point to must outlive the launches, but for
 * resources->backend. Safe to destroy after a failure. Errors: UNSUPPORTED (a step without a kernel), MEMORY,
 * BACKEND. */
gumbel_status gb_cuda_launches_create(const gb_cuda_resources *resources, const gb_cuda_inputs *inputs,
                                      gb_cuda_launches *launches, gumbel_error *error);
void gb_cuda_launches_destroy(gb_cuda_launches *launches);

/* Binds the sizes of the next steps. */
void gb_cuda_launches_bind(gb_cuda_launches *launches, const gb_cuda_step_sizes *sizes);

/* Enqueues the kernels of a step or of a part of it, whose inputs are on the device. Synchronizes where the
 * program branches; then a step has no parts. */
gumbel_status gb_cuda_launches_enqueue(gb_cuda_launches *launches, gb_cuda_step_part part,
                                       gumbel_error *error);

#endif
