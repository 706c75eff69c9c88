/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/drafter.h"

#include "base/memory.h"
#include "run/draft/model.h"

enum { ALERT_STEPS = 16 };

static const float forced_chance = 0.999f;
/* Tokens that each step adds to what a model's drafts may lose. */
static const double lost_share = 0.015;

/* ---- Making -------------------------------------------------------------------------------------------- */

gb_drafter *gb_drafter_create(uint32_t most, const int32_t *predicted, size_t predicted_count) {
    gb_drafter *drafter = gb_allocate(1, sizeof *drafter);
    if (!drafter)
        return NULL;
    drafter->most = most < GB_MOST_DRAFT ? most : GB_MOST_DRAFT;
    drafter->stats.size = sizeof drafter->stats;
    drafter->alert = predicted_count > 0 ? ALERT_STEPS : 0;
    drafter->looks_up = true;
    gb_lookup_add(&drafter->lookup, predicted, predicted_count);
    return drafter;
}

void gb_drafter_use_model(gb_drafter *drafter, gb_draft_model *model, bool alone) {
    drafter->model = model;
    drafter->looks_up = !alone;
    drafter->alert = ALERT_STEPS;
}

void gb_drafter_destroy(gb_drafter *drafter) {
    if (!drafter)
        return;
    gb_lookup_free(&drafter->lookup);
    gb_free(drafter->simulated.answer);
    gb_free(drafter);
}

void gb_drafter_add(gb_drafter *drafter, const int32_t *tokens, size_t count) {
    gb_lookup_add(&drafter->lookup, tokens, count);
}

/* ---- Proposing ----------------------------------------------------------------------------------------- */

static void add_forced(gb_drafter *drafter, gb_constraint *constraint, uint32_t most) {
    gb_draft *draft = &drafter->draft;
    draft->count = draft->forced_count =
        constraint ? gb_constraint_forced(constraint, draft->tokens, most) : 0;
    for (uint32_t i = 0; i < draft->count; i++)
        draft->chances[i] = forced_chance;
}

static void add_lookup(gb_drafter *drafter, uint32_t most) {
    gb_draft *draft = &drafter->draft;
    draft->matching = drafter->looks_up ? gb_lookup_find(&drafter->lookup, draft->tokens, most) : 0;
    float chance = 1;
    for (uint32_t i = 0; draft->matching > 0 && i < most; i++) {
        chance *= gb_acceptance_chance(&drafter->acceptance, draft->matching + i);
        draft->chances[draft->count++] = chance;
    }
}

static void cut_at_stop(gb_draft *draft, const gb_token_list *stop_tokens) {
    for (uint32_t i = 0; i < draft->count; i++)
        if (gb_lists_token(stop_tokens, draft->tokens[i]))
            draft->count = i;
}

/* Tokens that are forced are followed by no lookup, which knows only what has come. */
void gb_drafter_propose(gb_drafter *drafter, gb_constraint *constraint, const gb_token_list *stop_tokens,
                        uint32_t most) {
    gb_draft *draft = &drafter->draft;
    most = most < drafter->most ? most : drafter->most;
    draft->is_of_model = false;
    gb_acceptance_fade(&drafter->acceptance);
    if (drafter->model) {
        gb_acceptance_fade(&drafter->model->acceptance);
        gb_draft_model_gain(drafter->model, lost_share);
    }
    add_forced(drafter, constraint, most);
    if (draft->count == 0)
        add_lookup(drafter, most);
    cut_at_stop(draft, stop_tokens);
    if (constraint)
        draft->count = gb_constraint_set_draft(constraint, draft->tokens, draft->count);
}

void gb_drafter_model_chances(const gb_drafter *drafter, float *chances, uint32_t count) {
    float chance = 1;
    for (uint32_t i = 0; i < count; i++)
        chances[i] = chance *= gb_acceptance_chance(&drafter->model->acceptance, i);
}

uint32_t gb_drafter_model_tokens(const gb_drafter *drafter, const gb_step_times *times, uint32_t most,
                                 double each) {
    const gb_draft *draft = &drafter->draft;
    float chances[GB_MOST_DRAFT];
    double costs[GB_MOST_DRAFT];
    gb_drafter_model_chances(drafter, chances, most);
    for (uint32_t i = 0; i < most; i++)
        costs[i] = each;
    const gb_paying_rows of_model = gb_find_paying_rows(times, 1, chances, costs, most);
    const gb_paying_rows proposed = gb_find_paying_rows(times, 1, draft->chances, NULL, draft->count);
    return of_model.rate > proposed.rate ? (uint32_t)of_model.count : 0;
}

void gb_drafter_take_model(gb_drafter *drafter, uint32_t count, double price) {
    gb_draft *draft = &drafter->draft;
    draft->count = count;
    draft->is_of_model = true;
    draft->price = price;
    if (count == 0 && price > 0) { /* no step will tell what it was worth */
        gb_acceptance_note(&drafter->model->acceptance, 0, false);
        gb_draft_model_gain(drafter->model, -price);
    }
    gb_drafter_model_chances(drafter, draft->chances, count);
}

void gb_drafter_keep(gb_drafter *drafter, gb_constraint *constraint, uint32_t count) {
    if (count > 0)
        drafter->alert = ALERT_STEPS;
    else if (drafter->alert > 0)
        drafter->alert--;
    drafter->draft.count = drafter->ahead > 0 ? 0 : count;
    if (constraint)
        gb_constraint_set_draft(constraint, drafter->draft.tokens, drafter->draft.count);
}

/* ---- Steps ahead --------------------------------------------------------------------------------------- */

/* Behind the next step. */
static uint32_t begun(const gb_drafter *drafter) {
    return drafter->ahead > 0 ? drafter->ahead - 1 : 0;
}

uint32_t gb_drafter_lets_ahead(const gb_drafter *drafter, uint32_t steps) {
    return drafter->alert == 0 || steps < begun(drafter) ? steps : begun(drafter);
}

void gb_drafter_note_ahead(gb_drafter *drafter, uint32_t steps) {
    const uint32_t left = begun(drafter);
    drafter->ahead = steps > left ? steps : left;
}

/* ---- After a step -------------------------------------------------------------------------------------- */

void gb_draft_stats_note(gumbel_draft_stats *stats, uint32_t count, uint32_t accepted) {
    stats->steps += count > 0;
    stats->proposed += count;
    stats->accepted += accepted;
    for (uint32_t i = 0; i < count && i <= accepted; i++) {
        const uint32_t place = i < GUMBEL_DRAFT_PLACES ? i : GUMBEL_DRAFT_PLACES - 1;
        stats->tried_at[place]++;
        stats->accepted_at[place] += i < accepted;
    }
}

void gb_drafter_note(gb_drafter *drafter, uint32_t accepted) {
    const gb_draft *draft = &drafter->draft;
    gb_draft_stats_note(&drafter->stats, draft->count, accepted);
    gb_acceptance *acceptance = draft->is_of_model ? &drafter->model->acceptance : &drafter->acceptance;
    for (uint32_t i = draft->forced_count; i < draft->count && i <= accepted; i++)
        gb_acceptance_note(acceptance, draft->is_of_model ? i : draft->matching + i, i < accepted);
    if (draft->is_of_model && draft->count > 0)
        gb_draft_model_gain(drafter->model, accepted - draft->price);
    if (draft->count > 0 && accepted == 0)
        drafter->alert = 0;
    drafter->draft.count = 0;
}
