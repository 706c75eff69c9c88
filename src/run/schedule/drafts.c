/* SPDX-License-Identifier: Apache-2.0
 *
 * Which drafts a step verifies: those of all its answers are weighed together, the likeliest tokens first, as
 * far as they pay by what steps of so many rows were measured to take.
 */
#include "run/schedule/schedule.h"

#include <stdlib.h>

/* ---- Proposing ----------------------------------------------------------------------------------------- */

/* Made when the answer proper begins, so that those that wait take no memory. Without memory there are none.
 */
static gb_drafter *drafter_of(gb_answer *answer) {
    if (answer->drafter || answer->max_draft == 0)
        return answer->drafter;
    answer->drafter = gb_drafter_create(answer->max_draft, answer->predicted, answer->predicted_count);
    if (answer->drafter)
        gb_drafter_add(answer->drafter, answer->sequence->tokens, answer->sequence->count);
    else
        answer->max_draft = 0;
    return answer->drafter;
}

/* Rows behind the part's first one have its settings, and none is behind the answer's last token. */
static uint32_t draft_room(const gb_answer *answer) {
    const uint32_t to_limit = answer->limit - answer->sequence->count,
                   following = gb_answer_following(answer);
    const uint32_t most = to_limit > 0 ? to_limit - 1 : 0;
    return most < following ? most : following;
}

/* Lists a draft's tokens, as long as there is room. */
static size_t list_tokens(gb_serving_schedule *schedule, uint32_t part, const gb_draft *draft, size_t count) {
    for (uint32_t i = 0; i < draft->count; i++)
        schedule->draft_rows[count++] = (gb_draft_row){.chance = draft->chances[i], .part = part, .place = i};
    return count;
}

static size_t propose(gb_serving_schedule *schedule, size_t count) {
    size_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        gb_answer *answer = schedule->part_answers[i];
        gb_drafter *drafter = drafter_of(answer);
        if (!drafter)
            continue;
        const gb_token_list stops = {answer->stop_tokens, answer->stop_token_count};
        gb_drafter_propose(drafter, answer->constraint, &stops, draft_room(answer));
        listed = list_tokens(schedule, i, &drafter->draft, listed);
    }
    return listed;
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

/* Of one draft the tokens stay in order. */
static int by_chance(const void *one, const void *other) {
    const gb_draft_row *a = one, *b = other;
    if (a->chance != b->chance)
        return a->chance > b->chance ? -1 : 1;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static size_t choose(gb_serving_schedule *schedule, size_t listed, uint32_t rows, uint32_t room) {
    qsort(schedule->draft_rows, listed, sizeof *schedule->draft_rows, by_chance);
    size_t most = schedule->slots->most_rows - schedule->slots->count; /* each slot may have a row */
    most = most < room ? most : room;
    most = most < listed ? most : listed;
    for (size_t i = 0; i < most; i++)
        schedule->draft_chances[i] = schedule->draft_rows[i].chance;
    return gb_count_paying_rows(schedule->slots->step_times, rows, schedule->draft_chances, most);
}

/* Gives the part its draft, and the masks of its rows. */
static void take_draft(gb_serving_schedule *schedule, size_t index, uint32_t count) {
    gb_answer *answer = schedule->part_answers[index];
    gb_step_part *part = &schedule->parts[index];
    if (!answer->drafter)
        return;
    gb_drafter_keep(answer->drafter, answer->constraint, count);
    part->draft = answer->drafter->draft.tokens;
    part->draft_count = answer->drafter->draft.count;
    if (answer->constraint)
        part->mask = gb_constraint_mask(answer->constraint);
}

uint32_t gb_add_drafts(gb_serving_schedule *schedule, size_t count, uint32_t room) {
    uint32_t added = 0;
    if (schedule->slots->draft_tokens == 0 || count == 0)
        return 0;
    const size_t listed = propose(schedule, count), chosen = choose(schedule, listed, (uint32_t)count, room);
    for (size_t i = 0; i < count; i++) {
        uint32_t of_part = 0;
        for (size_t r = 0; r < chosen; r++)
            of_part += schedule->draft_rows[r].part == i;
        take_draft(schedule, i, of_part);
        added += schedule->parts[i].draft_count;
    }
    return added;
}
