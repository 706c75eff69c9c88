/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch's decode tokens and its prefill tokens run in separate passes, because they have different kernels:
 * decode first, since of a slot with both its tokens come first.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_PASSES_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_PASSES_H

#include "backends/backend.h"

typedef struct gb_cuda_passes {
    gb_batch_widths widths;
    int32_t *tokens; /* [step_tokens], and so on: those of the pass */
    int32_t *positions, *slots, *rows;
    bool *draft;
} gb_cuda_passes;

/* Reserves arrays for the largest batch. Safe to destroy after a failure. Errors: MEMORY. */
gumbel_status gb_cuda_passes_create(const gb_program *program, const gb_backend_options *options,
                                    gb_cuda_passes *passes, gumbel_error *error);
void gb_cuda_passes_destroy(gb_cuda_passes *passes);

/* The decode tokens of a batch or its prefill tokens, with their rows. Arrays are the batch's own or those
 * of passes; rows and outputs are the batch's from *first_row on. */
gb_batch gb_cuda_pass_of(gb_cuda_passes *passes, const gb_batch *batch, bool generated, uint32_t *first_row);

#endif
