/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a program on the device. A batch in which every sequence has one token is decoding: its launches
 * are captured when its size first comes and replayed from then on, whatever the settings are.
 *
 * Where steps follow on one another for one sequence, and the engine says so, the host enqueues some of them
 * ahead: token, position and seed advance on the device, and the host only reads tokens. What ran ahead and
 * is not what is asked for next is undone, which costs its time alone: a cache's rows beyond a position are
 * written again before they are read, and recurrent states have versions, one for each step that may be under
 * way, so that the slot's own is still there. The device knows the answer's stop tokens: after one of them it
 * only repeats that step.
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

/* Undoes what ran ahead, so that every slot's states are those of the steps that were asked for. */
void gb_cuda_executor_settle(gb_cuda_executor *executor);

#endif
