/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a step in one block of memory, of which one kernel brings to the device what the step uses:
 * the program's own, where the batch's runs of tokens of one slot begin, and the step's number.
 */
#ifndef GUMBEL_RUN_CUDA_INPUTS_H
#define GUMBEL_RUN_CUDA_INPUTS_H

#include "run/backend.h"

#include "run/cuda/handover.h"

typedef struct gb_cuda_inputs {
    const gb_program *program;
    uint64_t *offsets;     /* by input of the program, in both blocks */
    uint64_t *element_row; /* bytes of one token's or row's share of the input */
    uint64_t runs_offset, number_offset, size;
    uint8_t *pinned, *device;
    gb_cuda_parts parts; /* what the step uses */
} gb_cuda_inputs;

/* Reserves the blocks for the largest batch. Safe to destroy after a failure. */
gumbel_status gb_cuda_inputs_create(const gb_program *program, const gb_backend_options *options,
                                    gb_cuda_inputs *inputs, gumbel_error *error);
void gb_cuda_inputs_destroy(gb_cuda_inputs *inputs);

/* Fills the host's block. Returns how many runs there are. */
uint32_t gb_cuda_inputs_fill(gb_cuda_inputs *inputs, const gb_batch *batch, uint32_t number);

/* Copies what the step uses in the stream's order. */
void gb_cuda_inputs_send(const gb_cuda_inputs *inputs, cudaStream_t stream);

#endif
