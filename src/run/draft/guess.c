/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/guess.h"

#include "base/clock.h"
#include "base/status.h"
#include "program/settings.h"
#include "run/draft/drafter.h"
#include "run/draft/head.h"
#include "run/draft/model.h"

#include <string.h>

/* ---- Following the target ------------------------------------------------------------------------------ */

/* Guesses for several answers at once: each of its steps is one of the draft engine. */
typedef struct guessing {
    gumbel_engine *engine; /* the target's */
    gb_guess *guesses;     /* [count] */
    size_t count;
    gumbel_request *requests; /* of a step, in the order of the guesses that have one */
    size_t request_count;
    uint32_t room;   /* tokens that the step has left */
    uint32_t budget; /* tokens that may be run to catch up */
    uint32_t rounds, rows;
    bool is_typical; /* no prompt is due */
} guessing;

static gb_draft_model *model_of(const guessing *g, const gb_guess *guess) {
    return &g->engine->draft_models[guess->slot];
}

static const gumbel_session *target_of(const guessing *g, const gb_guess *guess) {
    return &g->engine->sessions[guess->slot];
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Where the session stands when it has run all of the target's tokens that the target has. */
static uint32_t goal_of(const gumbel_session *draft, const gumbel_session *target) {
    return target->position - draft->engine->head_offset;
}

/* Goes back to where both have the same tokens, or further where the states cannot stand there. What a draft
 * head has run behind guesses of its own is run again. */
static void go_back(const gb_draft_model *model, const gumbel_session *target) {
    gumbel_session *draft = model->session;
    const int32_t *tokens = target->tokens + draft->engine->head_offset;
    uint32_t same = 0, most = least(draft->position, goal_of(draft, target));
    if (draft->engine->is_draft_head)
        most = model->first_token == target->tokens[0] ? least(most, model->sure) : 0;
    while (same < most && draft->tokens[same] == tokens[same])
        same++;
    gb_session_go_back(draft, same);
}

/* Puts the target's tokens behind those that the session has run, and the one that it runs next. */
static void copy_tokens(gumbel_session *draft, const gumbel_session *target, int32_t next) {
    const uint32_t from = draft->position, goal = goal_of(draft, target),
                   at = from + draft->engine->head_offset;
    memcpy(draft->tokens + from, target->tokens + at, (goal - from) * sizeof *draft->tokens);
    memcpy(draft->generated + from, target->generated + at, (goal - from) * sizeof *draft->generated);
    draft->tokens[goal] = next;
    draft->generated[goal] = true;
    draft->is_repeating = true;
}

/* A head that attends to the target's keys has nothing to run of its tokens: it takes their rows. */
static gumbel_status take_tokens(gb_draft_model *model, const gumbel_session *target, gumbel_error *error) {
    gumbel_session *draft = model->session;
    const uint32_t known = gb_session_run_position(target);
    draft->known = known;
    if (draft->position >= known)
        return GUMBEL_OK;
    GB_TRY(gb_take_rows(target, draft, draft->position, known, error));
    draft->position = model->sure = known;
    if (target->written_end > draft->written_end) /* what it has overwritten is missing here, too */
        draft->written_end = target->written_end;
    if (target->whole_position > draft->whole_position)
        draft->whole_position = target->whole_position;
    return GUMBEL_OK;
}

/* Begins with a guess whose answer has a session of the draft engine. */
static gumbel_status follow(guessing *g, gb_guess *guess, gumbel_error *error) {
    gb_draft_model *model = model_of(g, guess);
    gumbel_session *draft = model->session;
    const gumbel_session *target = target_of(g, guess);
    guess->goes_on = target->position >= (draft->engine->is_draft_head ? 1 : 0);
    if (!guess->goes_on)
        return GUMBEL_OK;
    const uint32_t usual = draft->engine->attends_to_program ? GB_MOST_DRAFT + 1 : 1;
    g->is_typical &= draft->position + usual >= goal_of(draft, target);
    go_back(model, target);
    copy_tokens(draft, target, guess->next);
    model->first_token = target->tokens[0];
    return draft->engine->attends_to_program ? take_tokens(model, target, error) : GUMBEL_OK;
}

/* Whether the session lacks no more than a draft leaves, which the step of its first guess runs as well. One
 * that cannot go back in place first needs a snapshot of where it stands for the next one. */
static bool has_caught_up(const gumbel_session *draft, const gumbel_session *target) {
    const size_t left = goal_of(draft, target) + 1 - draft->position;
    if (draft->engine->is_draft_head && target->held > 0)
        return false;
    if (gb_has_recurrent_state(draft->engine->program))
        return left == 1;
    return left <= GB_MOST_DRAFT && gb_session_chunk(draft, left) == left;
}

static gumbel_status add_request(guessing *g, const gb_guess *guess, const gumbel_request *request,
                                 gumbel_error *error) {
    gumbel_session *draft = request->session;
    const gumbel_session *target = target_of(g, guess);
    const uint32_t count = (uint32_t)request->token_count + draft->held;
    g->requests[g->request_count++] = *request;
    g->room -= count;
    model_of(g, guess)->sure =
        least(draft->position + (uint32_t)request->token_count, gb_session_run_position(target));
    const uint32_t first = gb_session_run_position(draft);
    return draft->engine->attends_to_program ? GUMBEL_OK
                                             : gb_take_rows(target, draft, first, first + count, error);
}

/* The first of its tokens that the target has generated. */
static uint32_t generated_from(const gumbel_session *draft, const gumbel_session *target) {
    const uint32_t offset = draft->engine->head_offset;
    return target->generated_from > offset ? target->generated_from - offset : 0;
}

/* A part of what a session has still to run, as far as there is room. */
static gumbel_status add_piece(guessing *g, const gb_guess *guess, gumbel_error *error) {
    gumbel_session *draft = model_of(g, guess)->session;
    const gumbel_session *target = target_of(g, guess);
    const uint32_t left = goal_of(draft, target) - draft->position,
                   room = g->room > draft->held ? g->room - draft->held : 0,
                   most = g->budget < room ? g->budget : room;
    const size_t chunk = gb_session_chunk(draft, left < most ? left : most);
    if (chunk == 0 || draft->engine->attends_to_program || atomic_load(&target->cancelled))
        return GUMBEL_OK;
    draft->generated_from = generated_from(draft, target);
    g->budget -= (uint32_t)chunk;
    const gumbel_request request = {.size = sizeof request,
                                    .session = draft,
                                    .tokens = draft->tokens + draft->position,
                                    .token_count = chunk};
    return add_request(g, guess, &request, error);
}

static void begin_step(guessing *g) {
    g->request_count = 0;
    g->room = g->engine->draft_engine->step_tokens;
}

/* Runs what the sessions lack, until they have it or the budget is used up. */
static gumbel_status catch_up(guessing *g, gumbel_error *error) {
    do {
        begin_step(g);
        for (size_t i = 0; i < g->count; i++)
            if (g->guesses[i].goes_on &&
                !has_caught_up(model_of(g, &g->guesses[i])->session, target_of(g, &g->guesses[i])))
                GB_TRY(add_piece(g, &g->guesses[i], error));
        GB_TRY(gumbel_step(g->engine->draft_engine, g->requests, g->request_count, error));
    } while (g->request_count > 0);
    return GUMBEL_OK;
}

/* Leaves those guesses whose sessions have caught up. */
static gumbel_status settle_ready(guessing *g, gumbel_error *error) {
    const bool is_recurrent = gb_has_recurrent_state(g->engine->draft_engine->program);
    for (size_t i = 0; i < g->count; i++) {
        gb_guess *guess = &g->guesses[i];
        if (!guess->goes_on)
            continue;
        guess->is_ready = guess->goes_on = has_caught_up(model_of(g, guess)->session, target_of(g, guess)) &&
                                           !atomic_load(&target_of(g, guess)->cancelled);
        if (guess->is_ready && is_recurrent)
            GB_TRY(gumbel_session_snapshot(model_of(g, guess)->session, error));
    }
    return GUMBEL_OK;
}

/* ---- Settings ------------------------------------------------------------------------------------------ */

/* The answer's settings, as far as the draft's program takes them: a guess may do without one. */
static gumbel_sampling settings_of(const gb_guess *guess, const gb_program *program) {
    gumbel_sampling settings = *guess->sampling;
    const size_t most =
        gb_program_input(program, GB_ROLE_BIAS_IDS) == GB_NO_VALUE ? 0 : (size_t)program->metadata.max_bias;
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        if (gb_program_input(program, gb_settings[i].role) == GB_NO_VALUE)
            gb_setting_put(&gb_settings[i], gb_settings[i].shown.neutral, &settings);
    settings.bias_count = settings.bias_count < most ? settings.bias_count : most;
    return settings;
}

static void take_settings(gb_draft_model *model, const gb_guess *guess) {
    gumbel_session *draft = model->session;
    model->sampling = settings_of(guess, draft->engine->program);
    draft->has_seed = true;
    draft->seed = guess->seed;
    draft->seed_counter = 0;
}

/* The mask of the token behind the guesses, where the draft's program takes one. False: none may follow. */
static bool set_mask(gumbel_session *draft, const gb_guess *guess) {
    draft->mask = (gb_mask_source){0};
    if (!guess->constraint)
        return true;
    if (gb_constraint_set_draft(guess->constraint, guess->tokens, guess->count) < guess->count)
        return false;
    if (gb_program_input(draft->engine->program, GB_ROLE_MASK) != GB_NO_VALUE)
        draft->mask = gb_constraint_mask_behind(guess->constraint);
    return true;
}

/* ---- Guessing ------------------------------------------------------------------------------------------ */

/* Draws the token behind the guesses. The first one also runs what the target has drawn since. */
static gumbel_request draw_request(gb_draft_model *model, const gumbel_session *target,
                                   const gb_guess *guess) {
    gumbel_session *draft = model->session;
    gumbel_request request = {.size = sizeof request,
                              .session = draft,
                              .tokens = draft->tokens + draft->position,
                              .token_count = goal_of(draft, target) + 1 - draft->position,
                              .result = &model->result,
                              .sampling = &model->sampling};
    model->result = (gumbel_result){.size = sizeof model->result, .token = -1};
    draft->lookahead = (gb_lookahead){.sampling = &model->sampling, .steps = guess->most - 1 - guess->count};
    draft->is_repeating = guess->count == 0;
    if (guess->count == 0) {
        draft->generated_from = generated_from(draft, target);
        return request;
    }
    request.tokens = &guess->tokens[guess->count - 1];
    request.token_count = 1;
    return request;
}

/* Adds a guess's row to the round, unless none may follow, or its tokens leave no room for it. */
static gumbel_status add_draw(guessing *g, gb_guess *guess, gumbel_error *error) {
    gb_draft_model *model = model_of(g, guess);
    guess->goes_on = set_mask(model->session, guess);
    if (!guess->goes_on)
        return GUMBEL_OK;
    const gumbel_request request = draw_request(model, target_of(g, guess), guess);
    if (request.token_count + model->session->held <= g->room) {
        guess->rounds++;
        return add_request(g, guess, &request, error);
    }
    guess->goes_on = guess->is_ready = false;
    return GUMBEL_OK;
}

static void take_result(const guessing *g, gb_guess *guess) {
    const gb_draft_model *model = model_of(g, guess);
    const gumbel_result *result = &model->result;
    const bool is_banned = model->session->mask.make && gb_lacks_candidates(result);
    guess->has_failed = result->status != GUMBEL_OK && !is_banned;
    guess->goes_on = result->status == GUMBEL_OK &&
                     !gb_lists_token(&g->engine->program->metadata.stop_tokens, result->token);
    if (guess->goes_on)
        guess->tokens[guess->count++] = result->token;
    guess->goes_on &= guess->count < guess->most;
}

/* One guess of each answer that has more to draw. */
static gumbel_status draw_round(guessing *g, gumbel_error *error) {
    begin_step(g);
    for (size_t i = 0; i < g->count; i++)
        if (g->guesses[i].goes_on)
            GB_TRY(add_draw(g, &g->guesses[i], error));
    g->rounds += g->request_count > 0;
    g->rows += (uint32_t)g->request_count;
    const gumbel_status status = gumbel_step(g->engine->draft_engine, g->requests, g->request_count, error);
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_NUMERIC)
        return status;
    for (size_t i = 0; i < g->count; i++)
        if (g->guesses[i].goes_on)
            take_result(g, &g->guesses[i]);
    return GUMBEL_OK;
}

static gumbel_status draw(guessing *g, gumbel_error *error) {
    for (size_t i = 0; i < g->count; i++)
        if (g->guesses[i].goes_on)
            take_settings(model_of(g, &g->guesses[i]), &g->guesses[i]);
    do
        GB_TRY(draw_round(g, error));
    while (g->request_count > 0);
    return GUMBEL_OK;
}

/* One answer's failure leaves the others their guesses. */
static void follow_or_fail(guessing *g, gb_guess *guess) {
    gumbel_error why;
    const gumbel_status status = follow(g, guess, &why);
    if (status == GUMBEL_OK)
        return;
    guess->goes_on = false;
    guess->has_failed = true;
    model_of(g, guess)->result = (gumbel_result){
        .size = sizeof(gumbel_result),
        .token = -1,
        .status = status,
        .problem = "the states that the draft head shares with its program could not be copied"};
}

static gumbel_status guess_together(guessing *g, gumbel_error *error) {
    const uint64_t now = gb_draft_models_call(g->engine);
    for (size_t i = 0; i < g->count; i++) {
        gb_guess *guess = &g->guesses[i];
        guess->is_ready = guess->goes_on = guess->has_failed = false;
        guess->count = guess->rounds = 0;
        if (guess->most > 0 && gb_draft_model_take_session(g->engine, model_of(g, guess), now))
            follow_or_fail(g, guess);
    }
    GB_TRY(catch_up(g, error));
    GB_TRY(settle_ready(g, error));
    return draw(g, error);
}

/* What a step of the caller's own does not have. */
static void leave_sessions(const guessing *g) {
    for (size_t i = 0; i < g->count; i++) {
        gumbel_session *draft = model_of(g, &g->guesses[i])->session;
        if (!draft)
            continue;
        draft->mask = (gb_mask_source){0};
        draft->lookahead.sampling = NULL;
        draft->is_repeating = false;
    }
}

/* A guess that a step was due for is what step_times calls a row. */
static void note_time(const guessing *g, double seconds) {
    if (g->is_typical && g->rounds > 0)
        gb_step_times_note(&g->engine->draft_engine->step_times, g->rows / g->rounds, seconds / g->rounds);
}

gumbel_status gb_draft_models_guess(gumbel_engine *engine, gb_guess *guesses, size_t count, uint32_t budget,
                                    gumbel_error *error) {
    guessing g = {.engine = engine,
                  .guesses = guesses,
                  .count = count,
                  .requests = engine->draft_requests,
                  .budget = budget,
                  .is_typical = true};
    gb_step_times_begin(&engine->draft_engine->step_times);
    const double begun = gb_seconds();
    const gumbel_status status = guess_together(&g, error);
    leave_sessions(&g);
    if (status == GUMBEL_OK)
        note_time(&g, gb_seconds() - begun);
    return status;
}

gumbel_status gb_draft_model_guess(const gumbel_session *target, gb_constraint *constraint, gb_guess *guess,
                                   gumbel_error *error) {
    gumbel_engine *engine = target->engine;
    gb_draft_model *model = target->draft_model;
    guess->slot = target->slot;
    guess->next = target->pending_token;
    guess->seed = target->seed + target->seed_counter;
    guess->sampling = &target->generation.sampling;
    guess->constraint = constraint;
    guess->count = guess->rounds = 0;
    GB_TRY(gb_draft_model_begin(model, engine->draft_engine, error));
    GB_TRY(gb_draft_models_guess(engine, guess, 1, UINT32_MAX, error));
    if (guess->has_failed)
        return gb_fail(error, model->result.status, "%s", model->result.problem);
    return GUMBEL_OK;
}
