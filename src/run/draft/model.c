/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/model.h"

#include "base/clock.h"
#include "base/memory.h"
#include "program/settings.h"
#include "run/draft/same_tokens.h"

#include <string.h>

enum { PROBES = 4, PROBE_TOKENS = 3 };

/* ---- Making -------------------------------------------------------------------------------------------- */

gumbel_status gb_check_draft_engine(const gb_program *target, const gumbel_engine *draft_engine,
                                    gumbel_error *error) {
    const gb_program *program = draft_engine->program;
    if (!program->metadata.use_sampling)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "draft_engine: its program was exported with --logits and draws no tokens");
    if (gb_has_recurrent_state(program) && !draft_engine->snapshots)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_engine: its program has recurrent states, which go back to snapshots alone; "
                       "create it with the option snapshots");
    return gb_check_same_tokens(target, program, error);
}

gb_draft_model *gb_draft_models_create(uint32_t slots) {
    gb_draft_model *models = gb_allocate(slots, sizeof *models);
    for (uint32_t i = 0; models && i < slots; i++)
        models[i].acceptance.is_by_place = true;
    return models;
}

void gb_draft_model_end(gb_draft_model *model) {
    if (!model)
        return;
    gumbel_session_destroy(model->session);
    *model = (gb_draft_model){.acceptance.is_by_place = true};
}

/* ---- Weighing ------------------------------------------------------------------------------------------ */

/* The last guess is not run. */
uint32_t gb_draft_model_room(const gumbel_session *target) {
    const uint32_t most = target->engine->draft_engine->max_context;
    return most > target->position ? most - target->position : 0;
}

double gb_draft_model_cost(const gumbel_engine *engine) {
    const gb_step_times *own = &engine->draft_engine->step_times;
    if (gb_step_times_are_known(own) && gb_step_times_are_known(&engine->step_times))
        return gb_step_times_of(own, 1);
    return engine->draft_cost * gb_step_times_of(&engine->step_times, 1);
}

uint32_t gb_draft_model_probe(const gumbel_session *target, uint32_t most) {
    if (target->draft_model->probes == PROBES || target->engine->step_times.is_fixed)
        return 0;
    target->draft_model->probes++;
    return most < PROBE_TOKENS ? most : PROBE_TOKENS;
}

/* ---- Following the target ------------------------------------------------------------------------------ */

static gumbel_status begin_session(gb_draft_model *model, gumbel_engine *engine, gumbel_error *error) {
    return model->session ? GUMBEL_OK : gumbel_session_create(engine, &model->session, error);
}

/* Goes back to where both have the same tokens. */
static gumbel_status go_back(gumbel_session *draft, const gumbel_session *target, gumbel_error *error) {
    uint32_t same = 0;
    const uint32_t most = draft->position < target->position ? draft->position : target->position;
    while (same < most && draft->tokens[same] == target->tokens[same])
        same++;
    return gumbel_session_rewind(draft, same, error);
}

/* Puts the target's tokens behind those that the session has run, and the one that it runs next. */
static void copy_tokens(gumbel_session *draft, const gumbel_session *target) {
    const uint32_t from = draft->position, count = target->position - from;
    memcpy(draft->tokens + from, target->tokens + from, count * sizeof *draft->tokens);
    memcpy(draft->generated + from, target->generated + from, count * sizeof *draft->generated);
    draft->tokens[target->position] = target->pending_token;
    draft->generated[target->position] = true;
}

/* Runs the copied tokens up to an end, unless the target is cancelled. last is NULL, or what is wanted behind
 * them. */
static gumbel_status run_copied(gb_draft_model *model, const gumbel_session *target, uint32_t end,
                                const gumbel_request *last, gumbel_error *error) {
    gumbel_session *draft = model->session;
    gumbel_status status = GUMBEL_OK;
    draft->is_repeating = true;
    while (status == GUMBEL_OK && draft->position < end && !atomic_load(&target->cancelled)) {
        const size_t left = end - draft->position, chunk = gb_session_chunk(draft, left);
        draft->generated_from = target->generated_from;
        status =
            gb_session_run(draft, draft->tokens + draft->position, chunk, chunk == left ? last : NULL, error);
    }
    draft->is_repeating = false;
    return status;
}

/* Where rejected guesses cannot be forgotten in place, their states begin at a snapshot before them. */
static gumbel_status follow(gb_draft_model *model, const gumbel_session *target, gumbel_error *error) {
    gumbel_session *draft = model->session;
    GB_TRY(go_back(draft, target, error));
    copy_tokens(draft, target);
    if (!gb_has_recurrent_state(draft->engine->program))
        return GUMBEL_OK;
    GB_TRY(run_copied(model, target, target->position, NULL, error));
    return gumbel_session_snapshot(draft, error);
}

/* ---- Settings ------------------------------------------------------------------------------------------ */

/* The target's settings, as far as the draft's program takes them: a guess may do without one. */
static gumbel_sampling settings_of(const gumbel_session *target, const gb_program *program) {
    gumbel_sampling settings = target->generation.sampling;
    const size_t most =
        gb_program_input(program, GB_ROLE_BIAS_IDS) == GB_NO_VALUE ? 0 : (size_t)program->metadata.max_bias;
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        if (gb_program_input(program, gb_settings[i].role) == GB_NO_VALUE)
            gb_setting_put(&gb_settings[i], gb_settings[i].shown.neutral, &settings);
    settings.bias_count = settings.bias_count < most ? settings.bias_count : most;
    return settings;
}

static void take_settings(gb_draft_model *model, const gumbel_session *target) {
    gumbel_session *draft = model->session;
    model->sampling = settings_of(target, draft->engine->program);
    draft->has_seed = true;
    draft->seed = target->seed + target->seed_counter;
    draft->seed_counter = 0;
}

/* The mask of the token behind the guesses, where the draft's program takes one. False: none may follow. */
static bool set_mask(gumbel_session *draft, gb_constraint *constraint, const int32_t *tokens,
                     uint32_t count) {
    draft->mask = (gb_mask_source){0};
    if (!constraint)
        return true;
    if (gb_constraint_set_draft(constraint, tokens, count) < count)
        return false;
    if (gb_program_input(draft->engine->program, GB_ROLE_MASK) != GB_NO_VALUE)
        draft->mask = gb_constraint_mask_behind(constraint);
    return true;
}

/* ---- Guessing ------------------------------------------------------------------------------------------ */

static bool is_stop_token(const gb_program *program, int32_t token) {
    const gb_token_list *stops = &program->metadata.stop_tokens;
    for (uint32_t i = 0; i < stops->count; i++)
        if (stops->ids[i] == token)
            return true;
    return false;
}

/* Draws the token behind the guesses. The first one also runs what the target has drawn since. */
static gumbel_status draw_next(gb_draft_model *model, const gumbel_session *target, const int32_t *tokens,
                               uint32_t count, gumbel_result *result, gumbel_error *error) {
    const gumbel_request request = {.size = sizeof request, .result = result, .sampling = &model->sampling};
    if (count == 0)
        return run_copied(model, target, target->position + 1, &request, error);
    return gb_session_run(model->session, &tokens[count - 1], 1, &request, error);
}

/* Draws guesses until there are enough or none may follow. */
static gumbel_status draw(gb_draft_model *model, const gumbel_session *target, gb_constraint *constraint,
                          uint32_t most, int32_t *tokens, uint32_t *count, gumbel_error *error) {
    gumbel_session *draft = model->session;
    while (*count < most && set_mask(draft, constraint, tokens, *count)) {
        gumbel_result result = {.size = sizeof result, .token = -1};
        const bool has_mask = draft->mask.make != NULL;
        draft->lookahead = (gb_lookahead){.sampling = &model->sampling, .steps = most - 1 - *count};
        const gumbel_status status = draw_next(model, target, tokens, *count, &result, error);
        if (has_mask && gb_lacks_candidates(&result))
            return GUMBEL_OK;
        if (status != GUMBEL_OK || result.token < 0 || is_stop_token(target->engine->program, result.token))
            return status;
        tokens[(*count)++] = result.token;
    }
    return GUMBEL_OK;
}

/* A guess that a step was due for is what step_times calls a row. */
static void note_time(gumbel_engine *engine, double seconds, uint32_t count, bool is_typical) {
    if (is_typical && count > 0)
        gb_step_times_note(&engine->step_times, 1, seconds / count);
}

gumbel_status gb_draft_model_guess(const gumbel_session *target, gb_constraint *constraint, uint32_t most,
                                   int32_t *tokens, uint32_t *count, gumbel_error *error) {
    gb_draft_model *model = target->draft_model;
    *count = 0;
    GB_TRY(begin_session(model, target->engine->draft_engine, error));
    gumbel_session *draft = model->session;
    const double begun = gb_seconds();
    const bool is_typical = draft->position + 1 >= target->position; /* no prompt is due */
    GB_TRY(follow(model, target, error));
    take_settings(model, target);
    const gumbel_status status = draw(model, target, constraint, most, tokens, count, error);
    draft->mask = (gb_mask_source){0};
    draft->lookahead.sampling = NULL;
    note_time(draft->engine, gb_seconds() - begun, *count, is_typical && status == GUMBEL_OK);
    return status;
}
