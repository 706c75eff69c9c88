/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of all slots' states and of their snapshots. It is reserved whole and touched as positions are
 * used.
 */
#ifndef GUMBEL_BACKENDS_CPU_SLOTS_H
#define GUMBEL_BACKENDS_CPU_SLOTS_H

#include "backends/states/states.h"

/* A slot is whole pages, zero at first: its caches, then its recurrent states. */
typedef struct gb_slots {
    uint32_t slot_count;
    gb_states states;
} gb_slots;

/* Reserves the memory. On failure nothing is left to free. Errors: MEMORY, FORMAT (sizes out of range). */
gumbel_status gb_slots_create(const gb_program *program, uint32_t slot_count, uint32_t max_context,
                              bool snapshots, gb_slots *slots, gumbel_error *error);

/* Safe on a zeroed structure. */
void gb_slots_destroy(gb_slots *slots);

/* Makes the slot's state that of an empty session. */
void gb_slots_reset(gb_slots *slots, uint32_t slot);

#endif
