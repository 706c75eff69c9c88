/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a program on the device. The launches of a decode step are captured when a batch of that size
 * first comes, and replayed from then on; settings are data.
 *
 * Lookahead: where one sequence's steps follow each other, the host enqueues steps before it has read the
 * token that they begin with. Token, position and seed advance on the device (host_exchange.h). Undoing
 * lookahead costs only its time: rows of a cache beyond the position are written again before they are read,
 * and recurrent states have a version for each step in flight.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_EXECUTOR_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_EXECUTOR_H

#include "backends/cuda/runtime/launches.h"

typedef struct gb_cuda_executor gb_cuda_executor;

/* Reserves all that steps need, and captures the step of one token. What resources point to must outlive the
 * executor, but for resources->backend. Errors: UNSUPPORTED (a step without a kernel), MEMORY, BACKEND. */
gumbel_status gb_cuda_executor_create(const gb_cuda_resources *resources, gb_cuda_executor **executor,
                                      gumbel_error *error);
void gb_cuda_executor_destroy(gb_cuda_executor *executor);

/* Executes one step of the program and waits for it. Does not allocate, but for a graph where one is
 * captured. */
gumbel_status gb_cuda_executor_run(gb_cuda_executor *executor, gb_batch *batch, gumbel_error *error);

/* Tokens of a prompt that are computed as a block, which begins at a multiple of it; 1: each by itself. */
uint32_t gb_cuda_executor_grain(const gb_cuda_executor *executor);

/* Undoes lookahead: every slot's states become those of the steps of batches. */
void gb_cuda_executor_roll_back(gb_cuda_executor *executor);

#endif
