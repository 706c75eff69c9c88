/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings a session to where a conversation's reply begins.
 */
#include "base/versioned.h"
#include "run/handles.h"

/* Where the tokens begin that are left for the generation: those up to the next turn's snapshot are run. */
static gumbel_status run_stable(gumbel_session *session, const gumbel_turn *turn, gumbel_error *error) {
    if (turn->stable < turn->held || turn->stable == 0)
        return GUMBEL_OK;
    if (turn->stable > turn->held)
        GB_TRY(gumbel_session_append(session, turn->tokens + turn->held, turn->stable - turn->held, error));
    return session->engine->snapshots ? gumbel_session_snapshot(session, error) : GUMBEL_OK;
}

gumbel_status gumbel_conversation_prefill(gumbel_conversation *conversation, gumbel_session *session,
                                          gumbel_turn *turn, gumbel_error *error) {
    gumbel_turn made = {.size = sizeof made};
    GB_TRY(gb_check_versioned(turn, "turn", error));
    GB_TRY(gumbel_conversation_prompt(conversation, session->tokens, session->position, &made, error));
    if (made.count > session->engine->max_context)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "the conversation has %zu tokens: the context holds %u",
                       made.count, session->engine->max_context);
    GB_TRY(gumbel_session_rewind(session, (uint32_t)made.held, error));
    GB_TRY(run_stable(session, &made, error));
    made.begin = session->position;
    made.size = turn->size;
    gb_write_versioned(&made, sizeof made, turn);
    return GUMBEL_OK;
}
