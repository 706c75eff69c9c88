/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step tells the host, but for its logits: tokens, their log-probabilities and the likeliest tokens.
 * The device writes them to a ring in pinned memory, an entry a step, because several may be under way.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_RESULTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_RESULTS_H

#include "backends/backend.h"

#include "backends/cuda/lowering/kernels.h"
#include "backends/cuda/runtime/handover.h"

/* An output of the program; numbers are words of 4 bytes. */
typedef struct gb_cuda_output {
    gb_ref value;
    uint32_t row_words; /* of one row */
    uint32_t at;        /* where it begins in an entry, and in `kept` */
} gb_cuda_output;

typedef struct gb_cuda_results {
    gb_cuda_ring ring;
    uint32_t count;
    gb_cuda_output outputs[GB_CUDA_MOST_RESULTS];
    uint32_t *kept; /* [entry_words] of the batch that was executed last: what the engine is given */
} gb_cuda_results;

/* Reserves a ring of so many entries. Safe to destroy after a failure. Errors: MEMORY, BACKEND. */
gumbel_status gb_cuda_results_create(const gb_program *program, uint32_t slots, uint32_t entries,
                                     gb_cuda_results *results, gumbel_error *error);
void gb_cuda_results_destroy(gb_cuda_results *results);

/* What a step of so many rows hands out. tensors: by value of the program. */
void gb_cuda_results_to_hand(const gb_cuda_results *results, const gb_cuda_tensor *tensors,
                             uint32_t row_count, gb_cuda_handing *handing);

/* Whether step `number` has handed out its results. */
bool gb_cuda_results_are_there(const gb_cuda_results *results, uint32_t number);

/* Keeps them as those of the batch's rows first_row and following. */
void gb_cuda_results_collect(gb_cuda_results *results, uint32_t number, uint32_t first_row,
                             uint32_t row_count);

/* Gives the batch what was kept, but for logits. */
void gb_cuda_results_give(const gb_cuda_results *results, const gb_program *program, gb_batch *batch);

#endif
