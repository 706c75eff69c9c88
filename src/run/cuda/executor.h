/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan with its kernels and the device's memory resolved. A batch in which every sequence has one token is
 * decoding: its launches are captured the second time that its size comes and replayed from then on, whatever
 * the settings are.
 */
#ifndef GUMBEL_RUN_CUDA_EXECUTOR_H
#define GUMBEL_RUN_CUDA_EXECUTOR_H

#include "run/backend.h"
#include "run/cuda/slots.h"
#include "run/cuda/weights.h"
#include "run/plan/plan.h"

typedef struct gb_cuda_executor gb_cuda_executor;

typedef struct gb_cuda_executor_options {
    const gb_plan *plan;
    const gb_backend_options *backend;
    const gb_cuda_slots *slots;
    const gb_cuda_weights *weights;
    cudaStream_t stream;
} gb_cuda_executor_options;

/* Resolves the plan's steps and reserves all that steps need. What the options point to must outlive the
 * executor, but for options->backend. Errors: UNSUPPORTED (a step without a kernel), MEMORY, BACKEND. */
gumbel_status gb_cuda_executor_create(const gb_cuda_executor_options *options, gb_cuda_executor **executor,
                                      gumbel_error *error);
void gb_cuda_executor_destroy(gb_cuda_executor *executor);

/* Executes one step of the program and waits for it. Does not allocate, but for a graph where one is
 * captured. */
gumbel_status gb_cuda_executor_run(gb_cuda_executor *executor, gb_batch *batch, gumbel_error *error);

#endif
