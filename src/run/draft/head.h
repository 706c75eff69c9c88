/* SPDX-License-Identifier: Apache-2.0
 *
 * Draft heads: programs that guess from the hidden states of the target, whose engine keeps them by position.
 * A head runs the target's tokens, each beside the hidden state before it, and behind the target's last one
 * goes on from its own (Gloeckle et al., Better and faster large language models via multi-token prediction,
 * 2024). One that attends to the target's keys runs none of them: it is given those.
 */
#ifndef GUMBEL_RUN_DRAFT_HEAD_H
#define GUMBEL_RUN_DRAFT_HEAD_H

#include "run/handles.h"

/* Whether the head's program goes on from hidden states as the target's keeps them, and is its own where that
 * has one. Errors: ARGUMENT. */
gumbel_status gb_check_draft_head(const gb_program *target, const gb_program *head, gumbel_error *error);

/* Whether both engines are on one backend and the same devices, where hidden states can be given. Errors:
 * ARGUMENT.
 */
gumbel_status gb_check_draft_head_place(const gumbel_engine *engine, const gumbel_engine *head,
                                        gumbel_error *error);

/* Which states of a draft engine have rows of the target's, each by its number and the target's. */
typedef struct gb_taken_states {
    uint32_t count;
    struct gb_taken_state {
        uint32_t own, of_target;
    } list[];
} gb_taken_states;

/* Those of a head of the target's program; NULL without memory. Free with gb_free. */
gb_taken_states *gb_find_taken_states(const gb_program *target, const gb_program *head);

/* Gives the head's session the rows of positions first .. end - 1, as far as the target has run. Of another
 * draft engine it does nothing. Errors: the backend's. */
gumbel_status gb_take_rows(const gumbel_session *target, const gumbel_session *draft, uint32_t first,
                           uint32_t end, gumbel_error *error);

#endif
