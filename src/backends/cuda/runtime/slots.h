/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of all slots' states and snapshots on the device; caches take it as positions are used. What is
 * saved of a slot are the bytes that the CPU backend saves.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_SLOTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_SLOTS_H

#include "backends/cuda/runtime/host_copies.h"
#include "backends/cuda/runtime/virtual_range.h"
#include "backends/states/drafts.h"
#include "backends/states/states.h"

#include <cuda_runtime_api.h>

/* Longest lookahead: steps in flight that no batch has begun. */
enum { GB_CUDA_MOST_AHEAD = 4, GB_CUDA_STAGING_BYTES = 4 << 20 };

/* Recurrent states have more slots than there are sequences, versions: those from slot_count on hold what
 * steps that run ahead make of one sequence's, so that they can be undone, and those behind them what each of
 * a slot's drafts makes of its own. */
typedef struct gb_cuda_slots {
    uint32_t slot_count, draft_tokens;
    uint32_t beyond;  /* rows behind its position that a step writes: a draft head's own hidden state */
    gb_states states; /* recurrent: of slot_count * (1 + draft_tokens) + GB_CUDA_MOST_AHEAD, zero at first */
    gb_slot_drafts *drafts; /* [slot_count] of the last step; NULL: nothing has to be forgotten */
    gb_cuda_virtual_range caches, snapshots; /* the memory of these areas of states */
    uint32_t *positions;                     /* [slot_count] so many have memory */
    bool *is_empty;   /* [slot_count] since it was reset: other slots that need memory get its */
    uint8_t *staging; /* the host's, pinned: what is saved and loaded goes through it */
    gb_cuda_host_copies host_copies;
    gb_rank rank; /* the ranks' slots are given memory together */
    cudaStream_t stream;
} gb_cuda_slots;

/* Reserves addresses for caches and snapshots, and memory for recurrent states. Safe to destroy after a
 * failure. Errors: MEMORY, FORMAT (sizes out of range). */
gumbel_status gb_cuda_slots_create(const gb_program *program, const gb_backend_options *options,
                                   cudaStream_t stream, gb_cuda_slots *slots, gumbel_error *error);

/* Safe on a zeroed structure. */
void gb_cuda_slots_destroy(gb_cuda_slots *slots);

/* Gives memory to a slot's first `count` positions, which a step may use from then on. Where memory is short
 * it waits for the device and unmaps empty slots; where that of another rank is, it fails too. Errors:
 * MEMORY. */
gumbel_status gb_cuda_slots_map(gb_cuda_slots *slots, uint32_t slot, uint32_t count, gumbel_error *error);

/* Where a slot's recurrent states are after so many drafts of its last step. */
static inline uint32_t gb_cuda_slots_version(const gb_cuda_slots *slots, uint32_t slot, uint32_t drafts) {
    const uint32_t first = slots->slot_count + GB_CUDA_MOST_AHEAD + slot * slots->draft_tokens;
    return drafts == 0 ? slot : first + drafts - 1;
}

/* Puts the slot's recurrent states into the slot itself, if they are in a version. */
void gb_cuda_slots_settle(gb_cuda_slots *slots, uint32_t slot);

/* Forgets the slot's drafts from position on; false where its recurrent states cannot. */
bool gb_cuda_slots_truncate(gb_cuda_slots *slots, uint32_t slot, uint32_t position);

/* Where the tokens of a pass find their slots' recurrent states, and where each leaves them: a draft in a
 * version of its own. from, to: [token_count]. */
void gb_cuda_slots_place_versions(const gb_cuda_slots *slots, const gb_batch *pass, int32_t *from,
                                  int32_t *to);

/* After these places have been given to a pass. */
void gb_cuda_slots_advance(gb_cuda_slots *slots, const gb_batch *pass);

/* The slot stands at position, and its states are in the slot itself. */
void gb_cuda_slots_stand(gb_cuda_slots *slots, uint32_t slot, uint32_t position);

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

/* Maps the slot's rows, waits for the other stream and copies in this one. Errors: MEMORY, BACKEND. */
gumbel_status gb_cuda_slots_take_rows(gb_cuda_slots *slots, uint32_t slot, uint32_t state,
                                      const gb_cuda_slots *others, const gb_rows_of_slot *rows,
                                      gumbel_error *error);

gumbel_status gb_cuda_slots_copy_to_host(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                         gb_saved_states saved, gb_host_states **states, gumbel_error *error);
gumbel_status gb_cuda_slots_copy_from_host(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                           gb_saved_states saved, const gb_host_states *states,
                                           gumbel_error *error);

/* saved_slots.c */
gumbel_status gb_cuda_slots_save(const gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                 gb_saved_states saved, gb_save_stream write, void *user,
                                 gumbel_error *error);
gumbel_status gb_cuda_slots_load(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                 gb_saved_states saved, gb_load_stream read, void *user, gumbel_error *error);

#endif
