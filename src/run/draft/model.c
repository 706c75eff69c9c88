/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/model.h"

#include "base/memory.h"
#include "run/draft/head.h"
#include "run/draft/same_tokens.h"

enum { PROBE_TOKENS = 3 };
/* What drafts may lose at the start; later ones may lose a share of all steps (drafter.c). */
static const double first_budget = 3;
/* A session that had no guesses in so many calls is another answer's where none is free. */
enum { IDLE_CALLS = 32 };

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
    if (draft_engine->is_draft_head)
        GB_TRY(gb_check_draft_head(target, program, error));
    return gb_check_same_tokens(target, program, error);
}

gb_draft_model *gb_draft_models_create(uint32_t slots) {
    gb_draft_model *models = gb_allocate(slots, sizeof *models);
    for (uint32_t i = 0; models && i < slots; i++)
        models[i] = (gb_draft_model){.acceptance.is_by_place = true, .budget = first_budget};
    return models;
}

void gb_draft_model_end(gb_draft_model *model) {
    if (!model)
        return;
    gumbel_session_destroy(model->session);
    *model = (gb_draft_model){.acceptance.is_by_place = true, .budget = first_budget};
}

/* ---- Weighing ------------------------------------------------------------------------------------------ */

/* The last guess is not run. */
uint32_t gb_draft_model_room(const gumbel_session *target) {
    const uint32_t most = target->engine->draft_engine->max_context;
    return most > target->position ? most - target->position : 0;
}

double gb_draft_model_cost(const gumbel_engine *engine, uint32_t rows) {
    const gb_step_times *own = &engine->draft_engine->step_times;
    if (gb_step_times_are_known(own) && gb_step_times_are_known(&engine->step_times))
        return gb_step_times_of(own, rows);
    return engine->draft_cost * gb_step_times_of(&engine->step_times, rows);
}

double gb_draft_price(const gb_step_times *times, uint32_t rows, uint32_t count, double guessing) {
    const double alone = gb_step_times_of(times, rows);
    return rows * ((gb_step_times_of(times, rows + count) + guessing) / alone - 1);
}

uint32_t gb_draft_model_probe(const gb_draft_model *model, const gb_step_times *times, uint32_t rows,
                              uint32_t most, double each) {
    uint32_t count = most < PROBE_TOKENS ? most : PROBE_TOKENS;
    while (count > 0 && gb_draft_price(times, rows, count, count * each) > model->budget)
        count--;
    return count;
}

void gb_draft_model_gain(gb_draft_model *model, double tokens) {
    model->budget += tokens;
    if (model->budget > first_budget)
        model->budget = first_budget;
}

/* ---- Sessions ------------------------------------------------------------------------------------------ */

gumbel_status gb_draft_model_begin(gb_draft_model *model, gumbel_engine *draft_engine, gumbel_error *error) {
    return model->session ? GUMBEL_OK : gumbel_session_create(draft_engine, &model->session, error);
}

/* The draft model that has had no guesses for longest; NULL: all sessions are in use. */
static gb_draft_model *find_idle(const gumbel_engine *engine, uint64_t now) {
    gb_draft_model *oldest = NULL;
    for (uint32_t i = 0; i < engine->slots; i++) {
        gb_draft_model *model = &engine->draft_models[i];
        if (model->session && (!oldest || model->last_use < oldest->last_use))
            oldest = model;
    }
    return oldest && now - oldest->last_use > IDLE_CALLS ? oldest : NULL;
}

bool gb_draft_model_take_session(gumbel_engine *engine, gb_draft_model *model, uint64_t now) {
    if (gb_draft_model_begin(model, engine->draft_engine, NULL) != GUMBEL_OK) {
        gb_draft_model *idle = find_idle(engine, now);
        gb_draft_model_end(idle);
        if (!idle || gb_draft_model_begin(model, engine->draft_engine, NULL) != GUMBEL_OK)
            return false;
    }
    model->last_use = now;
    return true;
}

uint64_t gb_draft_models_call(const gumbel_engine *engine) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < engine->slots; i++)
        last = engine->draft_models[i].last_use > last ? engine->draft_models[i].last_use : last;
    return last + 1;
}
