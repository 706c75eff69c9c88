/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of all slots' states and of their snapshots. It is reserved whole and touched as positions are
 * used. Which rows count at a position: of a full cache rows 0 .. position - 1; of a ring all rows that have
 * been written, each the latest position that is its row modulo the capacity; of a recurrent state all of it.
 */
#ifndef GUMBEL_RUN_CPU_SLOTS_H
#define GUMBEL_RUN_CPU_SLOTS_H

#include "run/backend.h"

typedef struct gb_state_place {
    gb_state_kind kind;
    uint64_t row_bytes;       /* a recurrent state is one row */
    uint64_t rows;            /* of one slot: max_context, the ring's capacity, or 1 */
    uint64_t window;          /* RING */
    uint64_t offset;          /* in a slot */
    uint64_t snapshot_offset; /* in a slot's snapshot; of a cache unused */
} gb_state_place;

typedef struct gb_slots {
    uint32_t slot_count, state_count;
    gb_state_place *states;
    uint64_t slot_bytes, snapshot_bytes; /* of one slot, whole pages */
    uint8_t *memory;                     /* [slot_count, slot_bytes], zero at first */
    uint8_t *snapshots;                  /* [slot_count, snapshot_bytes], or NULL */
} gb_slots;

/* Reserves the memory. On failure nothing is left to free. Errors: MEMORY, FORMAT (sizes out of range). */
gumbel_status gb_slots_create(const gb_program *program, uint32_t slot_count, uint32_t max_context,
                              bool snapshots, gb_slots *slots, gumbel_error *error);

/* Safe on a zeroed structure. */
void gb_slots_destroy(gb_slots *slots);

/* See backend.h for what these do. Saving keeps of a ring the last window rows, in the order of positions, so
 * that the bytes do not depend on its capacity; that is all that later tokens can read. */
void gb_slots_reset(gb_slots *slots, uint32_t slot);
void gb_slots_copy(gb_slots *slots, uint32_t from, uint32_t to, uint32_t position);
void gb_slots_take_snapshot(gb_slots *slots, uint32_t slot, uint32_t position);
void gb_slots_restore_snapshot(gb_slots *slots, uint32_t slot, uint32_t position);
gumbel_status gb_slots_save(const gb_slots *slots, uint32_t slot, uint32_t position, gb_save_stream write,
                            void *user, gumbel_error *error);
gumbel_status gb_slots_load(gb_slots *slots, uint32_t slot, uint32_t position, gb_load_stream read,
                            void *user, gumbel_error *error);

#endif
