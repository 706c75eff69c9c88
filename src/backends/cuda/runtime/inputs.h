/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a step in one block of memory, which one kernel fetches: the program's own, the runs of
 * tokens of one slot, the versions of recurrent states, the stop tokens and the step's number. Host and
 * device have a block each. Under lookahead both advance without being filled: the device's when it posts a
 * token, the host's when it reads that.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_INPUTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_INPUTS_H

#include "backends/backend.h"

#include "backends/cuda/lowering/kernels.h"
#include "backends/cuda/runtime/host_exchange.h"
#include "backends/cuda/runtime/slots.h"

typedef struct gb_cuda_inputs {
    const gb_program *program;
    uint64_t *offsets;     /* by input of the program, in both blocks */
    uint64_t *element_row; /* bytes of one token's or row's share of the input */
    uint64_t runs_offset, run_positions_offset, from_offset, to_offset, turn_offset, stops_offset,
        number_offset, size;
    uint32_t slots;
    bool has_versions;
    uint8_t *pinned, *device;
    uint32_t token_count, row_count, run_count; /* of the batch that they hold */
    gb_cuda_parts parts;                        /* what it uses */
} gb_cuda_inputs;

/* Reserves the blocks for the largest batch. Safe to destroy after a failure. */
gumbel_status gb_cuda_inputs_create(const gb_program *program, const gb_backend_options *options,
                                    gb_cuda_inputs *inputs, gumbel_error *error);
void gb_cuda_inputs_destroy(gb_cuda_inputs *inputs);

/* Fills the host's block. Recurrent states are read and written where slots says. */
void gb_cuda_inputs_fill(gb_cuda_inputs *inputs, const gb_batch *batch, const gb_cuda_slots *slots,
                         uint32_t number);

/* Fills the host's block with the masks of a batch that was filled in while they were being made: nothing
 * else is part of what is sent next. */
void gb_cuda_inputs_fill_masks(gb_cuda_inputs *inputs, const gb_batch *batch);

/* Copies what the step uses in the stream's order. */
void gb_cuda_inputs_send(const gb_cuda_inputs *inputs, cudaStream_t stream);

/* Whether the batch asks for what the host's block holds. */
bool gb_cuda_inputs_hold(const gb_cuda_inputs *inputs, const gb_batch *batch);

/* Advances the host's block, of one token with a row, as gb_cuda_post_results does the device's; false:
 * the token is a stop token of the block, after which both stay. */
bool gb_cuda_inputs_advance(gb_cuda_inputs *inputs, int32_t drawn);

/* Which of the device's inputs advance in a step of so many tokens, each of which has a row. */
gb_cuda_advance gb_cuda_inputs_advancing(const gb_cuda_inputs *inputs, const int32_t *drawn, uint32_t count,
                                         uint32_t spares);

/* Where the device has the rest: the runs of the batch, and the versions (NULL where there are none). */
gb_cuda_runs gb_cuda_inputs_runs(const gb_cuda_inputs *inputs);
gb_cuda_versions gb_cuda_inputs_versions(const gb_cuda_inputs *inputs);
uint32_t *gb_cuda_inputs_number(const gb_cuda_inputs *inputs);

#endif
