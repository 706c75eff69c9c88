/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/model.h"
#include "run/drawn_ahead.h"

#include <string.h>

gumbel_status gumbel_session_create(gumbel_engine *engine, gumbel_session **session, gumbel_error *error) {
    *session = NULL;
    for (uint32_t i = 0; i < engine->slots; i++) {
        gumbel_session *free_one = &engine->sessions[i];
        if (free_one->in_use)
            continue;
        free_one->in_use = true;
        free_one->has_seed = false;
        free_one->seed = free_one->seed_counter = 0; /* the slot's last session's are not to be saved */
        atomic_store(&free_one->cancelled, false);
        gb_session_clear(free_one);
        *session = free_one;
        return GUMBEL_OK;
    }
    return gb_fail(error, GUMBEL_ERROR_LIMIT, "all %u slots of the engine are taken", engine->slots);
}

void gumbel_session_destroy(gumbel_session *session) {
    if (!session)
        return;
    gb_session_clear(session);
    gb_session_forget_generation(session);
    gb_draft_model_end(session->draft_model);
    session->in_use = false;
}

void gb_session_clear(gumbel_session *session) {
    gb_backend *backend = session->engine->backend;
    backend->functions->reset_slot(backend, session->slot);
    session->ahead.left = 0;
    session->position = session->held = session->written_end = session->whole_position = 0;
    session->generated_from = session->known = 0;
    session->pending_token = session->drawn_token = -1;
    session->has_snapshot = session->is_repeating = session->is_rewound = session->is_ahead = false;
    session->generation.active = false;
    session->lookahead.sampling = NULL;
}

void gumbel_session_reset(gumbel_session *session) {
    gb_session_settle(session);
    gb_session_clear(session);
}

uint32_t gumbel_session_position(const gumbel_session *session, const int32_t **tokens) {
    if (tokens)
        *tokens = session->tokens;
    return session->position - session->ahead.left;
}

void gumbel_session_cancel(gumbel_session *session) {
    atomic_store(&session->cancelled, true);
}

size_t gb_session_chunk(const gumbel_session *session, size_t count) {
    const gumbel_engine *engine = session->engine;
    size_t chunk = engine->prefill_chunk - session->position % engine->prefill_chunk;
    if (chunk > engine->step_tokens - session->held)
        chunk = engine->step_tokens - session->held;
    chunk = chunk < count ? chunk : count;
    const bool *generated = session->generated + session->position;
    const size_t in_rings = (size_t)gb_ring_slack(engine->program) + 1;
    if (session->is_repeating && generated[0] && chunk > in_rings)
        chunk = in_rings;
    for (size_t i = 1; session->is_repeating && i < chunk; i++)
        if (generated[i] != generated[0])
            return i;
    return chunk;
}

gumbel_status gb_session_run(gumbel_session *session, const int32_t *tokens, size_t count,
                             const gumbel_request *last, gumbel_error *error) {
    gumbel_engine *engine = session->engine;
    if (count > engine->max_context - session->position)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "%zu tokens after position %u: the context holds %u (export with a larger "
                       "--max-context, or start a new session)",
                       count, session->position, engine->max_context);
    while (count > 0) {
        if (atomic_exchange(&session->cancelled, false))
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "cancelled");
        const size_t chunk = gb_session_chunk(session, count);
        gumbel_request request = {.size = sizeof request};
        if (last && chunk == count)
            request = *last;
        request.session = session;
        request.tokens = tokens;
        request.token_count = chunk;
        GB_TRY(gumbel_step(engine, &request, 1, error));
        tokens += chunk;
        count -= chunk;
    }
    return GUMBEL_OK;
}

/* A token that was generated but not run belongs before whatever comes next. */
static gumbel_status run_pending(gumbel_session *session, gumbel_error *error) {
    if (session->pending_token < 0)
        return GUMBEL_OK;
    int32_t token = session->pending_token;
    return gb_session_run(session, &token, 1, NULL, error);
}

gumbel_status gumbel_session_append(gumbel_session *session, const int32_t *tokens, size_t count,
                                    gumbel_error *error) {
    if (count > 0 && !tokens)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "append: tokens is NULL");
    gb_session_settle(session);
    session->generation.active = false;
    GB_TRY(run_pending(session, error));
    return gb_session_run(session, tokens, count, NULL, error);
}

bool gb_can_truncate_rings(const gb_program *program, uint32_t written_end, uint32_t whole_position,
                           uint32_t position) {
    for (uint32_t i = 0; i < program->state_count; i++) {
        const gb_state *state = &program->states[i];
        if (state->kind != GB_STATE_RING)
            continue;
        int64_t capacity = state->type.shape.dims[0], window = state->window;
        int64_t oldest = (int64_t)written_end - capacity;
        int64_t oldest_whole = (int64_t)whole_position - window + 1;
        if (oldest_whole > oldest)
            oldest = oldest_whole;
        if (oldest > 0 && (int64_t)position - window + 1 < oldest)
            return false;
    }
    return true;
}

bool gb_can_truncate(const gb_program *program, uint32_t written_end, uint32_t whole_position,
                     uint32_t position) {
    return !gb_has_recurrent_state(program) &&
           gb_can_truncate_rings(program, written_end, whole_position, position);
}

/* Lets the states forget what is behind an earlier position; false where they have to start over. */
static bool truncate_states(gumbel_session *session, uint32_t position) {
    const gumbel_engine *engine = session->engine;
    if (position >= gb_session_run_position(session))
        return true;
    if (!gb_can_truncate_rings(engine->program, session->written_end, session->whole_position, position))
        return false;
    if (engine->draft_tokens > 0)
        return engine->backend->functions->truncate_slot(engine->backend, session->slot, position);
    return !gb_has_recurrent_state(engine->program);
}

/* Not one amid a block of a prompt that goes on behind it. */
static bool has_usable_snapshot(const gumbel_session *session) {
    const uint32_t position = session->snapshot_position;
    if (!session->has_snapshot)
        return false;
    return position == session->engine->max_context || session->generated[position] ||
           !gb_session_is_amid_block(session, position);
}

void gb_session_start_over(gumbel_session *session) {
    gb_backend *backend = session->engine->backend;
    if (has_usable_snapshot(session)) {
        backend->functions->restore_snapshot(backend, session->slot, session->snapshot_position);
        session->position = session->snapshot_position;
    } else {
        backend->functions->reset_slot(backend, session->slot);
        session->position = 0;
    }
    session->held = 0;
    session->written_end = session->whole_position = session->position;
    session->is_ahead = false;
}

void gb_session_go_back(gumbel_session *session, uint32_t position) {
    if (session->has_snapshot && session->snapshot_position > position)
        session->has_snapshot = false;
    if (position == session->position)
        return;
    if (!truncate_states(session, position)) {
        gb_session_start_over(session);
        return;
    }
    const uint32_t run = gb_session_run_position(session);
    session->held = position > run ? position - run : 0;
    session->position = position;
}

/* Takes the state to an earlier position. */
static gumbel_status go_back(gumbel_session *session, uint32_t position, gumbel_error *error) {
    gb_session_go_back(session, position);
    session->is_repeating = true;
    gumbel_status status = gb_session_run(session, session->tokens + session->position,
                                          position - session->position, NULL, error);
    session->is_repeating = false;
    return status;
}

gumbel_status gumbel_session_rewind(gumbel_session *session, uint32_t position, gumbel_error *error) {
    gb_session_settle(session);
    if (position > session->position)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "rewind to position %u: the session is at %u", position,
                       session->position);
    session->generation.active = false;
    session->pending_token = -1;
    if (position == session->position)
        return GUMBEL_OK;
    /* Running the tokens again must not make those that were generated part of the prompt. */
    uint32_t generated_from = session->generated_from;
    int32_t following = position >= generated_from ? session->tokens[position] : -1;
    gumbel_status status = go_back(session, position, error);
    session->generated_from = generated_from < session->position ? generated_from : session->position;
    session->drawn_token = status == GUMBEL_OK ? following : -1;
    session->is_rewound = true;
    return status;
}

gumbel_status gumbel_session_snapshot(gumbel_session *session, gumbel_error *error) {
    if (!session->engine->snapshots)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "snapshot: the engine was created without the option snapshots");
    gb_session_settle(session);
    gb_backend *backend = session->engine->backend;
    const uint32_t position = gb_session_run_position(session);
    GB_TRY(backend->functions->take_snapshot(backend, session->slot, position, error));
    session->has_snapshot = true;
    session->snapshot_position = position;
    return GUMBEL_OK;
}

gumbel_status gumbel_session_fork(const gumbel_session *session, gumbel_session **copy, gumbel_error *error) {
    gb_session_settle(&session->engine->sessions[session->slot]);
    GB_TRY(gumbel_session_create(session->engine, copy, error));
    gumbel_session *made = *copy;
    gb_backend *backend = session->engine->backend;
    gumbel_status status = backend->functions->copy_slot(backend, session->slot, made->slot,
                                                         gb_session_run_position(session), error);
    if (status != GUMBEL_OK) {
        gumbel_session_destroy(made);
        *copy = NULL;
        return status;
    }
    memcpy(made->tokens, session->tokens, session->position * sizeof *made->tokens);
    memcpy(made->generated, session->generated, session->position * sizeof *made->generated);
    made->position = session->position;
    made->held = session->held;
    made->written_end = session->written_end;
    made->whole_position = session->whole_position;
    made->pending_token = session->pending_token;
    made->generated_from = session->generated_from;
    made->drawn_token = session->drawn_token;
    made->is_rewound = session->is_rewound;
    made->has_seed = session->has_seed;
    made->seed = session->seed;
    made->seed_counter = session->seed_counter;
    return GUMBEL_OK;
}

void gumbel_session_set_seed(gumbel_session *session, uint64_t seed) {
    gb_session_settle(session);
    session->has_seed = true;
    session->seed = seed;
    session->seed_counter = 0;
}

gumbel_status gumbel_session_get_seed(gumbel_session *session, uint64_t *seed, gumbel_error *error) {
    gb_session_settle(session);
    if (!session->has_seed) {
        uint64_t drawn;
        GB_TRY(gb_draw_seed(&drawn, error));
        gumbel_session_set_seed(session, drawn);
    }
    *seed = session->seed + session->seed_counter;
    return GUMBEL_OK;
}
