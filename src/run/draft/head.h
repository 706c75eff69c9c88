/* SPDX-License-Identifier: Apache-2.0
 *
 * Draft heads: programs that guess from the hidden states of the target, whose engine keeps them by position.
 * A head's session has the target's tokens from the second one on, and is given the hidden state before each;
 * behind the target's last one it goes on from its own. (Gloeckle et al., Better and faster large language
 * models via multi-token prediction, 2024)
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

/* How many of the target's first tokens a draft session leaves out: a head has no hidden state before the
 * first. */
static inline uint32_t gb_draft_offset(const gumbel_session *draft) {
    return draft->engine->is_draft_head ? 1 : 0;
}

/* Gives the head's session the hidden states before the next count tokens that it runs, as far as the target
 * has run. Of another draft engine it does nothing. Errors: the backend's. */
gumbel_status gb_take_hidden(const gumbel_session *target, gumbel_session *draft, size_t count,
                             gumbel_error *error);

#endif
