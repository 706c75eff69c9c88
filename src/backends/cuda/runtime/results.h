/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of a step but for its logits: tokens, their log-probabilities and the likeliest tokens. The device
 * posts them to a mailbox in pinned memory, an entry a step, because several steps may be in flight.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_RESULTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_RESULTS_H

#include "backends/backend.h"

#include "backends/cuda/lowering/kernels.h"
#include "backends/cuda/runtime/host_exchange.h"

/* An output of the program; numbers are words of 4 bytes. */
typedef struct gb_cuda_output {
    gb_ref value;
    uint32_t row_words; /* of one row */
    uint32_t at;        /* where it begins in an entry, and in `copied` */
} gb_cuda_output;

typedef struct gb_cuda_results {
    gb_cuda_mailbox mailbox;
    uint32_t count;
    gb_cuda_output outputs[GB_CUDA_MOST_RESULTS];
    uint32_t *copied; /* [entry_words] of the batch that was executed last: what the engine is given */
} gb_cuda_results;

/* Reserves a ring of so many entries, of so many rows at most. Safe to destroy after a failure. Errors:
 * MEMORY, BACKEND. */
gumbel_status gb_cuda_results_create(const gb_program *program, uint32_t rows, uint32_t entries,
                                     gb_cuda_results *results, gumbel_error *error);
void gb_cuda_results_destroy(gb_cuda_results *results);

/* What a step of so many rows posts. tensors: by value of the program. */
void gb_cuda_results_describe(const gb_cuda_results *results, const gb_cuda_tensor *tensors,
                              uint32_t row_count, gb_cuda_post *post);

/* Whether step `number` has posted its results. */
bool gb_cuda_results_are_posted(const gb_cuda_results *results, uint32_t number);

/* Copies them to the batch's rows first_row and following. */
void gb_cuda_results_collect(gb_cuda_results *results, uint32_t number, uint32_t first_row,
                             uint32_t row_count);

/* Gives the batch what was collected, but for logits. */
void gb_cuda_results_copy_to(const gb_cuda_results *results, const gb_program *program, gb_batch *batch);

#endif
