/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draw.h"

#include "base/clock.h"
#include "run/constraint.h"
#include "run/draft/drafter.h"
#include "run/draft/guess.h"
#include "run/draft/model.h"
#include "run/drawn_ahead.h"

#include <stdio.h>

/* ---- What is due --------------------------------------------------------------------------------------- */

/* Runs a stretch of the prompt; a cancel in its middle keeps what was run, so that the rest stays due. */
static gumbel_status run_prompt(gumbel_session *session, uint32_t count, const gumbel_request *last,
                                gumbel_error *error) {
    gb_generation *generation = &session->generation;
    uint32_t before = session->position;
    gumbel_status status =
        gb_session_run(session, session->prompt + generation->prompt_done, count, last, error);
    generation->prompt_done += session->position - before;
    return status;
}

static gumbel_status run_due_tokens(gumbel_session *session, const gumbel_request *last,
                                    gumbel_error *error) {
    gb_generation *generation = &session->generation;
    uint32_t due = generation->prompt_count - generation->prompt_done;
    if (due == 0) {
        int32_t token = session->pending_token;
        return gb_session_run(session, &token, 1, last, error);
    }
    if (generation->snapshot) {
        GB_TRY(run_prompt(session, due - 1, NULL, error));
        GB_TRY(gumbel_session_snapshot(session, error));
        due = 1;
    }
    return run_prompt(session, due, last, error);
}

/* ---- Drafts -------------------------------------------------------------------------------------------- */

/* How long a draft may be: all of it runs beside one token, and behind the last token none is wanted. */
static uint32_t draft_room(const gumbel_session *session) {
    const gumbel_engine *engine = session->engine;
    const gb_generation *generation = &session->generation;
    uint32_t room = engine->max_context - session->position;
    room = room < engine->prefill_chunk ? room : engine->prefill_chunk;
    room = room < engine->step_tokens ? room : engine->step_tokens;
    if (generation->max_new_tokens > 0 && generation->max_new_tokens - generation->generated < room)
        room = generation->max_new_tokens - generation->generated;
    return room > 0 ? room - 1 : 0;
}

/* Its guesses are a help that an answer can do without. */
static void give_up_model(gb_drafter *drafter, const gumbel_engine *engine, const gumbel_error *why) {
    char notice[GUMBEL_MESSAGE_BYTES + 64];
    drafter->model = NULL;
    snprintf(notice, sizeof notice, "no more drafts of the draft model for this answer: %s", why->message);
    if (engine->log)
        engine->log(engine->log_user, GUMBEL_LOG_INFO, notice);
}

/* Where steps are still ahead it only says that its guesses pay, so that no more are begun. Returns how many
 * rows to keep. */
static uint32_t draft_by_model(const gumbel_session *session, uint32_t count) {
    gb_drafter *drafter = session->drafter;
    const gumbel_engine *engine = session->engine;
    gumbel_error error;
    if (drafter->ahead > 0)
        return count;
    const double each = gb_draft_model_cost(engine, 1);
    gb_guess guess = {.most = count, .tokens = drafter->draft.tokens};
    const gumbel_status status = gb_draft_model_guess(session, session->constraint, &guess, &error);
    gb_drafter_take_model(drafter, guess.count,
                          gb_draft_price(&engine->step_times, 1, guess.count, guess.rounds * each));
    count =
        gb_drafter_make_right(drafter, session->generation.generated, &engine->program->metadata.stop_tokens);
    if (status == GUMBEL_OK)
        return count;
    give_up_model(drafter, engine, &error);
    drafter->draft.count = 0;
    return 0;
}

/* Of what is proposed and what the draft model would guess, takes what gives the most tokens a second. A
 * model that guessed from the first step on would leave nothing to compare with. Returns how many rows it
 * has. */
static uint32_t choose_draft(const gumbel_session *session, uint32_t most) {
    gb_drafter *drafter = session->drafter;
    const gb_draft *draft = &drafter->draft;
    const gb_step_times *times = &session->engine->step_times;
    const uint32_t paying = (uint32_t)gb_count_paying_rows(times, 1, draft->chances, draft->count);
    if (!drafter->model || draft->forced_count > 0 || !gb_step_times_are_settled(times, 1))
        return paying;
    const uint32_t room = gb_draft_model_room(session), limit = drafter->most;
    most = most < room ? most : room;
    most = most < limit ? most : limit;
    const double each = gb_draft_model_cost(session->engine, 1);
    uint32_t count = gb_drafter_model_tokens(drafter, times, most, each);
    if (count == 0 && paying == 0)
        count = gb_draft_model_probe(drafter->model, times, 1, most, each);
    return count > 0 ? draft_by_model(session, count) : paying;
}

/* Chooses the draft of the next step and gives it to the request. A prompt's has none. */
static void add_draft(gumbel_session *session, gumbel_request *request) {
    gb_drafter *drafter = session->drafter;
    if (!drafter || session->generation.prompt_done < session->generation.prompt_count)
        return;
    const uint32_t most = draft_room(session);
    const gb_draft *draft = &drafter->draft;
    gb_drafter_propose(drafter, session->constraint, &session->engine->program->metadata.stop_tokens, most);
    gb_drafter_keep(drafter, session->constraint, choose_draft(session, most));
    if (draft->count == 0)
        return;
    request->draft = draft->tokens;
    request->draft_count = draft->count;
    request->result = session->ahead.results;
}

/* Learns from a step that went well, and takes over what it drew behind the first token. */
static void note_draft(gumbel_session *session, const gumbel_request *request) {
    gb_drafter *drafter = session->drafter;
    if (!drafter)
        return;
    gb_drafter_note_ahead(drafter, session->engine->batch.following_count);
    if (request->draft_count == 0)
        return;
    gb_drafter_note(drafter, request->result->accepted);
    gb_drawn_ahead_keep(session->engine, &session->ahead);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* Steps follow until the generation has its tokens, or a stop token. */
static gb_lookahead lookahead_of(const gumbel_session *session) {
    const gb_generation *generation = &session->generation;
    gb_lookahead lookahead = {.sampling = &generation->sampling, .steps = UINT32_MAX};
    if (session->constraint && gb_constraint_mask(session->constraint).make)
        return (gb_lookahead){0};
    if (generation->max_new_tokens > 0)
        lookahead.steps = generation->max_new_tokens - generation->generated - 1;
    if (session->drafter)
        lookahead.steps = gb_drafter_lets_ahead(session->drafter, lookahead.steps);
    if (!generation->ignore_stop)
        lookahead.stop_tokens = session->engine->program->metadata.stop_tokens;
    return lookahead;
}

/* Runs what is due under the mask of the generation's grammar, if it has one. */
static gumbel_status run_masked(gumbel_session *session, const gumbel_request *last, gumbel_error *error) {
    const bool is_prompt = session->generation.prompt_done < session->generation.prompt_count;
    if (session->constraint)
        session->mask = gb_constraint_mask(session->constraint);
    session->lookahead = lookahead_of(session);
    gb_step_times_begin(&session->engine->step_times);
    const double begun = gb_seconds();
    const gumbel_status status = run_due_tokens(session, last, error);
    session->mask = (gb_mask_source){0};
    if (!is_prompt && status == GUMBEL_OK)
        gb_step_times_note(&session->engine->step_times, 1 + (uint32_t)last->draft_count,
                           gb_seconds() - begun);
    return status;
}

/* Runs a step, and takes over what it drew where it had a draft, a row without a token included. */
static gumbel_status draw(gumbel_session *session, gumbel_request *request, gumbel_error *error) {
    add_draft(session, request);
    const gumbel_status status = run_masked(session, request, error);
    if (status != GUMBEL_OK && (status != GUMBEL_ERROR_NUMERIC || request->draft_count == 0))
        return status;
    note_draft(session, request);
    return GUMBEL_OK;
}

static gumbel_status next_result(gumbel_session *session, gumbel_result *result, gumbel_error *error) {
    const gb_generation *generation = &session->generation;
    gumbel_request request = {.size = sizeof request,
                              .result = result,
                              .sampling = &generation->sampling,
                              .wants_logprob = generation->wants_logprob,
                              .top_logprobs = generation->top_logprobs};
    if (session->ahead.left == 0)
        GB_TRY(draw(session, &request, error));
    else if (atomic_exchange(&session->cancelled, false))
        return gb_fail(error, GUMBEL_ERROR_CANCELLED, "cancelled");
    if (session->ahead.left == 0)
        return GUMBEL_OK;
    *result = *gb_drawn_ahead_take(&session->ahead);
    if (result->status == GUMBEL_OK)
        return GUMBEL_OK;
    session->pending_token = -1; /* the token before it has been run */
    return gb_fail(error, result->status, "request 0: %s", result->problem);
}

/* The same, and the generation's grammar goes on behind the token. */
gumbel_status gb_draw_next(gumbel_session *session, gumbel_result *result, gumbel_error *error) {
    gb_constraint *constraint = session->constraint;
    gumbel_status status = next_result(session, result, error);
    if (!constraint)
        return status;
    if (status != GUMBEL_OK)
        return gb_lacks_candidates(result) ? gb_constraint_explain(constraint, error) : status;
    status = gb_constraint_accept(constraint, result->token, error);
    if (status != GUMBEL_OK) { /* nobody gets the token */
        gb_session_settle(session);
        session->pending_token = -1;
    }
    return status;
}
