/* SPDX-License-Identifier: Apache-2.0
 *
 * Which positions recurrent states can forget: the drafts of each slot's last step. A backend keeps what it
 * needs to leave a state as it was behind any of them: states, or what makes them.
 */
#ifndef GUMBEL_BACKENDS_STATES_DRAFTS_H
#define GUMBEL_BACKENDS_STATES_DRAFTS_H

#include "backends/batch/batch.h"

/* Of a slot, whose states are wanted as they are after position + count tokens. */
typedef struct gb_slot_drafts {
    uint32_t position; /* of the first draft of its last step; without one, where the slot stands */
    uint32_t count;    /* drafts that have not been forgotten */
    uint32_t turn;     /* steps with drafts so far */
} gb_slot_drafts;

/* After a step of the batch. of_slot: [slots]. */
void gb_drafts_advance(gb_slot_drafts *of_slot, const gb_batch *batch);

/* Forgets the drafts from position on; false where the slot stands before or behind them all. */
bool gb_drafts_truncate(gb_slot_drafts *of_slot, uint32_t position);

/* The slot stands at position, and has nothing to forget. */
static inline void gb_drafts_reset(gb_slot_drafts *of_slot, uint32_t position) {
    of_slot->position = position;
    of_slot->count = 0;
}

#endif
