/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of all slots' states and snapshots on the device; caches take it as positions are used. What is
 * saved of a slot are the bytes that the CPU backend saves.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_SLOTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_SLOTS_H

#include "backends/cuda/runtime/virtual_range.h"
#include "backends/states/states.h"

#include <cuda_runtime_api.h>

/* Longest lookahead: steps in flight that no batch has begun. */
enum { GB_CUDA_MOST_AHEAD = 4, GB_CUDA_STAGING_BYTES = 4 << 20 };

/* Recurrent states have more slots than there are sequences: those from slot_count on hold what steps that
 * run ahead make of one sequence's, so that they can be undone. */
typedef struct gb_cuda_slots {
    uint32_t slot_count;
    gb_states states; /* recurrent: of slot_count + GB_CUDA_MOST_AHEAD, zero at first */
    gb_cuda_virtual_range caches, snapshots; /* the memory of these areas of states */
    uint32_t *positions;                     /* [slot_count] so many have memory */
    bool *is_empty;   /* [slot_count] since it was reset: other slots that need memory get its */
    uint8_t *staging; /* the host's, pinned: what is saved and loaded goes through it */
    cudaStream_t stream;
} gb_cuda_slots;

/* Reserves addresses for caches and snapshots, and memory for recurrent states. Safe to destroy after a
 * failure. Errors: MEMORY, FORMAT (sizes out of range). */
gumbel_status gb_cuda_slots_create(const gb_program *program, const gb_backend_options *options,
                                   cudaStream_t stream, gb_cuda_slots *slots, gumbel_error *error);

/* Safe on a zeroed structure. */
void gb_cuda_slots_destroy(gb_cuda_slots *slots);

/* Gives memory to a slot's first `count` positions, which a step may use from then on. Where memory is short
 * it waits for the device and unmaps empty slots. Errors: MEMORY. */
gumbel_status gb_cuda_slots_map(gb_cuda_slots *slots, uint32_t slot, uint32_t count, gumbel_error *error);

/* Gives the recurrent states of slot `to` the values of those of slot `from`, either of which may be a
 * version.
 */
void gb_cuda_slots_copy_recurrent(gb_cuda_slots *slots, uint32_t from, uint32_t to);

/* See backend.h for what these do; they are done in the stream's order. */
void gb_cuda_slots_reset(gb_cuda_slots *slots, uint32_t slot);
gumbel_status gb_cuda_slots_copy(gb_cuda_slots *slots, uint32_t from, uint32_t to, uint32_t position,
                                 gumbel_error *error);
gumbel_status gb_cuda_slots_take_snapshot(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                          gumbel_error *error);

/* saved_slots.c */
gumbel_status gb_cuda_slots_save(const gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                 gb_save_stream write, void *user, gumbel_error *error);
gumbel_status gb_cuda_slots_load(gb_cuda_slots *slots, uint32_t slot, uint32_t position, gb_load_stream read,
                                 void *user, gumbel_error *error);

#endif
