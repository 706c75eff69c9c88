/* SPDX-License-Identifier: Apache-2.0
 *
 * Which drafts a step verifies: those of all its answers are weighed together, the likeliest tokens first, as
 * far as they pay by what steps of so many rows were measured to take. What a draft model would guess is
 * weighed by how good it was and what it took; it guesses no more than what is chosen.
 */
#include "run/draft/model.h"
#include "run/schedule/schedule.h"

#include <stdlib.h>

/* ---- Proposing ----------------------------------------------------------------------------------------- */

static void use_model(const gb_slots_of_engine *slots, const gb_answer *answer) {
    if (slots->draft_models && answer->drafting != GUMBEL_DRAFTING_LOOKUP)
        gb_drafter_use_model(answer->drafter, &slots->draft_models[answer->sequence->slot],
                             answer->drafting == GUMBEL_DRAFTING_MODEL);
}

/* Made when the answer proper begins, so that those that wait take no memory. Without memory there are none.
 */
static gb_drafter *drafter_of(const gb_slots_of_engine *slots, gb_answer *answer) {
    if (answer->drafter || answer->max_draft == 0)
        return answer->drafter;
    answer->drafter = gb_drafter_create(answer->max_draft, answer->predicted, answer->predicted_count);
    if (!answer->drafter) {
        answer->max_draft = 0;
        return NULL;
    }
    gb_drafter_add(answer->drafter, answer->sequence->tokens, answer->sequence->count);
    use_model(slots, answer);
    return answer->drafter;
}

/* The model of the slot that the answer has now, unless it has failed. */
static void follow_slot(const gb_slots_of_engine *slots, const gb_answer *answer) {
    gb_drafter *drafter = answer->drafter;
    if (drafter->model)
        drafter->model = slots->draft_models ? &slots->draft_models[answer->sequence->slot] : NULL;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Rows behind the part's first one have its settings, and none is behind the answer's last token. */
static uint32_t draft_room(const gb_answer *answer) {
    const uint32_t to_limit = answer->limit - answer->sequence->count;
    return least(to_limit > 0 ? to_limit - 1 : 0, gb_answer_following(answer));
}

/* How many tokens the model may guess in place of what is proposed; 0: there is none, or that is better. Its
 * rounds are shared by all answers of the step, each of which costs as much as this one's. */
static uint32_t model_tokens(const gb_slots_of_engine *slots, const gb_answer *answer, uint32_t rows) {
    const gb_drafter *drafter = answer->drafter;
    const uint32_t position = answer->sequence->position;
    if (!drafter->model || drafter->draft.forced_count > 0 || position >= slots->draft_context ||
        !gb_step_times_are_settled(slots->step_times, rows))
        return 0;
    const uint32_t most = least(least(draft_room(answer), slots->draft_context - position), drafter->most);
    const double cost = slots->functions->guess_cost(slots, rows);
    const bool is_better =
        drafter->draft.count == 0 || gb_drafter_model_tokens(drafter, slots->step_times, most, cost) > 0;
    return is_better ? most : 0;
}

/* What there is for each part. Returns whether the model may guess for any. */
static bool propose(gb_serving_schedule *schedule, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        gb_answer *answer = schedule->part_answers[i];
        schedule->guesses[i] = (gb_guess){0};
        if (!drafter_of(schedule->slots, answer))
            continue;
        const gb_token_list stops = {answer->stop_tokens, answer->stop_token_count};
        follow_slot(schedule->slots, answer);
        gb_drafter_propose(answer->drafter, answer->constraint, &stops, draft_room(answer));
        schedule->guesses[i].most = model_tokens(schedule->slots, answer, (uint32_t)count);
        any |= schedule->guesses[i].most > 0;
    }
    return any;
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

/* Lists a draft's tokens behind the others. */
static size_t list_tokens(gb_serving_schedule *schedule, uint32_t part, const float *chances, uint32_t most,
                          bool is_of_model, size_t listed) {
    for (uint32_t i = 0; i < most; i++)
        schedule->draft_rows[listed++] =
            (gb_draft_row){.chance = chances[i], .part = part, .place = i, .is_of_model = is_of_model};
    return listed;
}

/* Lists what the model may guess where it may and is to, and what is proposed for the others. */
static size_t list_all(gb_serving_schedule *schedule, size_t count, bool by_model) {
    size_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        const gb_drafter *drafter = schedule->part_answers[i]->drafter;
        const uint32_t of_model = by_model ? schedule->guesses[i].most : 0;
        float chances[GB_MOST_DRAFT];
        if (of_model > 0) {
            gb_drafter_model_chances(drafter, chances, of_model);
            listed = list_tokens(schedule, i, chances, of_model, true, listed);
        } else if (drafter) {
            listed = list_tokens(schedule, i, drafter->draft.chances, drafter->draft.count, false, listed);
        }
    }
    return listed;
}

/* Of one draft the tokens stay in order. */
static int by_chance(const void *one, const void *other) {
    const gb_draft_row *a = one, *b = other;
    if (a->chance != b->chance)
        return a->chance > b->chance ? -1 : 1;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* What each number of answers adds to a round of guesses that has one less. */
static void set_added_costs(gb_serving_schedule *schedule, size_t count) {
    double before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double cost = schedule->slots->functions->guess_cost(schedule->slots, i + 1);
        schedule->added_costs[i] = cost > before ? cost - before : 0;
        before = cost;
    }
}

static void set_costs(gb_serving_schedule *schedule, size_t listed) {
    uint32_t answers[GB_MOST_DRAFT] = {0}; /* of each round */
    for (size_t i = 0; i < listed; i++) {
        const gb_draft_row *row = &schedule->draft_rows[i];
        schedule->draft_chances[i] = row->chance;
        schedule->draft_costs[i] = row->is_of_model ? schedule->added_costs[answers[row->place]++] : 0;
    }
}

/* Draft rows that a step has room for: each slot may have a row. */
static size_t most_drafts(const gb_serving_schedule *schedule, uint32_t room) {
    return least(schedule->slots->most_rows - schedule->slots->count, room);
}

/* How many of the likeliest rows pay, which then stand first. */
static gb_paying_rows weigh(gb_serving_schedule *schedule, size_t count, uint32_t room, bool by_model) {
    const size_t listed = list_all(schedule, count, by_model), most = most_drafts(schedule, room);
    qsort(schedule->draft_rows, listed, sizeof *schedule->draft_rows, by_chance);
    set_costs(schedule, listed);
    return gb_find_paying_rows(schedule->slots->step_times, (uint32_t)count, schedule->draft_chances,
                               schedule->draft_costs, listed < most ? listed : most);
}

/* Deals the chosen rows out: to each guess what it is to have, and to each part's draft_count. */
static void deal(gb_serving_schedule *schedule, size_t count, size_t chosen) {
    for (size_t i = 0; i < count; i++)
        schedule->parts[i].draft_count = schedule->guesses[i].most = 0;
    for (size_t r = 0; r < chosen; r++) {
        const gb_draft_row *row = &schedule->draft_rows[r];
        schedule->parts[row->part].draft_count++;
        schedule->guesses[row->part].most += row->is_of_model;
    }
}

/* What a guess of one answer takes in a round of guesses for so many. */
static double share_of_cost(const gb_slots_of_engine *slots, size_t count) {
    return slots->functions->guess_cost(slots, (uint32_t)count) / (double)count;
}

/* Where nothing pays, guesses within the answers' budgets tell what they take and how good they are. */
static void deal_probes(gb_serving_schedule *schedule, size_t count, uint32_t room) {
    const gb_slots_of_engine *slots = schedule->slots;
    const double each = share_of_cost(slots, count);
    size_t left = most_drafts(schedule, room);
    for (size_t i = 0; i < count; i++) {
        gb_guess *guess = &schedule->guesses[i];
        const gb_drafter *drafter = schedule->part_answers[i]->drafter;
        const uint32_t most = left < guess->most ? (uint32_t)left : guess->most;
        guess->most =
            most == 0 ? 0
                      : gb_draft_model_probe(drafter->model, slots->step_times, (uint32_t)count, most, each);
        schedule->parts[i].draft_count = guess->most;
        left -= guess->most;
    }
}

/* Of lookups alone, and of both, takes what gives the most tokens a second. */
static void choose(gb_serving_schedule *schedule, size_t count, uint32_t room, bool any_model) {
    gb_paying_rows chosen = weigh(schedule, count, room, false);
    if (any_model) {
        set_added_costs(schedule, count);
        const gb_paying_rows mixed = weigh(schedule, count, room, true);
        if (mixed.count == 0 && chosen.count == 0) {
            deal_probes(schedule, count, room);
            return;
        }
        chosen = mixed.rate > chosen.rate ? mixed : weigh(schedule, count, room, false);
    }
    deal(schedule, count, chosen.count);
}

/* ---- Guessing ------------------------------------------------------------------------------------------ */

/* Says what the model is to guess. Where steps are still ahead it is only said that its guesses pay, so that
 * no more are begun. Returns whether there is anything. */
static bool fill_guess(const gb_answer *answer, const gb_step_part *part, gb_guess *guess) {
    if (guess->most == 0 || answer->drafter->ahead > 0) {
        guess->most = 0;
        return false;
    }
    guess->slot = part->slot;
    guess->next = part->tokens[0];
    guess->seed = part->seed;
    guess->sampling = part->sampling;
    guess->constraint = answer->constraint;
    guess->tokens = answer->drafter->draft.tokens;
    return true;
}

/* One whose session has still to catch up keeps what was proposed; one that failed has overwritten that. */
static void take_guess(gb_drafter *drafter, const gb_guess *guess, bool was_made, double price,
                       gb_step_part *part) {
    if (!was_made || guess->has_failed) {
        drafter->draft.count = 0;
        drafter->model = NULL;
    } else if (guess->is_ready) {
        gb_drafter_take_model(drafter, guess->count, price);
    }
    part->draft_count = least(part->draft_count, drafter->draft.count);
}

static void guess_all(gb_serving_schedule *schedule, size_t count) {
    gb_slots_of_engine *slots = schedule->slots;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= fill_guess(schedule->part_answers[i], &schedule->parts[i], &schedule->guesses[i]);
    if (!any)
        return;
    const double each = share_of_cost(slots, count);
    const bool was_made = slots->functions->guess(slots, schedule->guesses, count) == GUMBEL_OK;
    for (size_t i = 0; i < count; i++) {
        const gb_guess *guess = &schedule->guesses[i];
        if (guess->most > 0)
            take_guess(schedule->part_answers[i]->drafter, guess, was_made,
                       gb_draft_price(slots->step_times, (uint32_t)count, guess->count, guess->rounds * each),
                       &schedule->parts[i]);
    }
}

/* ---- Taking -------------------------------------------------------------------------------------------- */

/* Gives the part its draft, and the masks of its rows. */
static void take_draft(const gb_answer *answer, gb_step_part *part) {
    if (!answer->drafter)
        return;
    gb_drafter_keep(answer->drafter, answer->constraint, part->draft_count);
    part->draft = answer->drafter->draft.tokens;
    part->draft_count = answer->drafter->draft.count;
    if (answer->constraint)
        part->mask = gb_constraint_mask(answer->constraint);
}

uint32_t gb_add_drafts(gb_serving_schedule *schedule, size_t count, uint32_t room) {
    uint32_t added = 0;
    if (schedule->slots->draft_tokens == 0 || count == 0)
        return 0;
    choose(schedule, count, room, propose(schedule, count));
    guess_all(schedule, count);
    for (size_t i = 0; i < count; i++) {
        take_draft(schedule->part_answers[i], &schedule->parts[i]);
        added += schedule->parts[i].draft_count;
    }
    return added;
}
