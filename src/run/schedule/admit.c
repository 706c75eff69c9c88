/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/schedule.h"

/* ---- Ending early -------------------------------------------------------------------------------------- */

static void end_early(gb_serving_schedule *schedule, gb_answer *answer, gumbel_status status,
                      const char *message) {
    if (answer->phase == GB_WAITING)
        atomic_fetch_sub(&schedule->queued, 1);
    schedule->counts.failed++;
    schedule->counts.cancelled += status == GUMBEL_ERROR_CANCELLED;
    gb_answer_fail(answer, status, message, gb_schedule_now(schedule));
    gb_release(schedule, answer, true);
}

void gb_end_overdue(gb_serving_schedule *schedule) {
    const double now = gb_schedule_now(schedule);
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next) {
        const bool goes_on = answer->phase != GB_ENDED;
        if (goes_on && atomic_load(&answer->cancelled))
            end_early(schedule, answer, GUMBEL_ERROR_CANCELLED, "cancelled");
        else if (goes_on && gb_has_failed(schedule))
            end_early(schedule, answer, schedule->failure.status, schedule->failure.message);
        else if (goes_on && answer->deadline > 0 && now >= answer->deadline)
            end_early(schedule, answer, GUMBEL_ERROR_DEADLINE, "the request's deadline is over");
    }
}

/* ---- Beginning ----------------------------------------------------------------------------------------- */

/* Whether the answer's states fit beside those of running answers, if nothing is kept. */
static bool can_run(const gb_serving_schedule *schedule, uint64_t needed) {
    const uint32_t running = gb_running_count(schedule);
    if (running == 0)
        return true;
    return !schedule->is_short && running < schedule->slots->count &&
           gb_running_bytes(schedule) + needed <= schedule->options.state_bytes;
}

static bool has_room(const gb_serving_schedule *schedule, uint64_t needed) {
    return gb_free_slot(schedule) != GB_NO_SLOT &&
           gb_running_bytes(schedule) + gb_kept_bytes(schedule) + needed <= schedule->options.state_bytes;
}

static void make_room(gb_serving_schedule *schedule, uint64_t needed) {
    while (!has_room(schedule, needed) && gb_evict(schedule))
        ;
}

static void place(gb_serving_schedule *schedule, gb_answer *answer, uint32_t slot) {
    schedule->slot_used[slot] = true;
    answer->sequence->slot = slot;
    answer->sequence->place = GB_PLACE_SLOT;
    answer->phase = GB_RUNNING;
}

static bool is_kept(const gb_serving_schedule *schedule, const gb_sequence *sequence) {
    const gb_sequence *kept = schedule->kept;
    while (kept && kept != sequence)
        kept = kept->next;
    return sequence && kept;
}

/* Whether the answer takes the place of the sequence that it begins with: one of which nothing is lost so, or
 * the last one whose slot can be had. */
static bool takes_over(const gb_serving_schedule *schedule, const gb_sequence *source, uint32_t position,
                       uint64_t needed) {
    return is_kept(schedule, source) && (gb_uses_all(schedule, source, position) ||
                                         (source->place == GB_PLACE_SLOT && !has_room(schedule, needed)));
}

/* Gives a slot, which is the source's own where that is taken over. */
static uint32_t slot_for(const gb_serving_schedule *schedule, const gb_sequence *source, bool taken_over) {
    if (!taken_over || source->place != GB_PLACE_SLOT)
        return gb_free_slot(schedule);
    return source->slot;
}

static void begin(gb_serving_schedule *schedule, gb_answer *answer, uint64_t needed) {
    uint32_t position;
    gb_sequence *source = gb_find_prefix(schedule, answer, &position);
    schedule->pinned = source;
    make_room(schedule, needed);
    const bool taken_over = takes_over(schedule, source, position, needed);
    const uint32_t slot = slot_for(schedule, source, taken_over);
    if (!source)
        schedule->slots->functions->clear(schedule->slots, slot);
    else if (gb_begin_with(schedule, answer, source, position, slot, NULL) == GUMBEL_OK)
        answer->cached_tokens = position;
    schedule->pinned = NULL;
    if (taken_over) { /* its slot is the answer's now */
        gb_unlink_kept(schedule, source);
        source->place = GB_PLACE_NONE;
        gb_sequence_destroy(source);
    } else if (is_kept(schedule, source)) { /* it was used last */
        gb_unlink_kept(schedule, source);
        gb_keep(schedule, source);
    }
    place(schedule, answer, slot);
    schedule->counts.cached_tokens += answer->cached_tokens;
    answer->began_at = gb_schedule_now(schedule);
    atomic_fetch_sub(&schedule->queued, 1);
    gb_trim_host(schedule);
}

/* An answer whose states could not be brought back waits for another one to end, if there is one. */
static void wait_or_fail(gb_serving_schedule *schedule, gb_answer *answer, const gumbel_error *error) {
    schedule->is_short = true;
    if (gb_running_count(schedule) > 0)
        return;
    schedule->counts.failed++;
    gb_answer_fail(answer, error->status, error->message, gb_schedule_now(schedule));
    gb_release(schedule, answer, false);
}

/* Brings a spilled answer's states back. */
static void resume(gb_serving_schedule *schedule, gb_answer *answer, uint64_t needed) {
    gb_sequence *sequence = answer->sequence;
    gumbel_error error;
    make_room(schedule, needed);
    const uint32_t slot = gb_free_slot(schedule);
    const gb_token_prefix prefix = gb_sequence_prefix(sequence, sequence->position);
    const gumbel_status status = schedule->slots->functions->load(
        schedule->slots, slot, &prefix, GB_SAVED_ALL, sequence->saved->states, &error);
    if (status != GUMBEL_OK) {
        schedule->slots->functions->clear(schedule->slots, slot);
        wait_or_fail(schedule, answer, &error);
        return;
    }
    gb_saved_release(sequence->saved);
    sequence->saved = NULL;
    place(schedule, answer, slot);
}

/* ---- In order ------------------------------------------------------------------------------------------ */

/* Whether the answer should wait until the first one of its request has run their prompt. */
static bool waits_for_prompt(const gb_serving_schedule *schedule, const gb_answer *answer) {
    if (answer->index == 0 || !schedule->keeps || answer->no_prefix_cache)
        return false;
    for (const gb_answer *first = schedule->answers; first; first = first->next)
        if (first->request == answer->request && first->index == 0 && first->phase != GB_ENDED)
            return first->sequence->position < first->sequence->prompt_end;
    return false;
}

static bool try_to_run(gb_serving_schedule *schedule, gb_answer *answer) {
    const uint64_t longest = (uint64_t)answer->sequence->count + schedule->options.answer_reserve;
    answer->reserved = longest < answer->limit ? (uint32_t)longest : answer->limit;
    const uint64_t needed = gb_answer_bytes(schedule, answer);
    if (!can_run(schedule, needed))
        return false;
    if (answer->phase == GB_SPILLED)
        resume(schedule, answer, needed);
    else
        begin(schedule, answer, needed);
    return answer->phase == GB_RUNNING;
}

void gb_admit(gb_serving_schedule *schedule) {
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next) {
        const bool waits = answer->phase == GB_WAITING || answer->phase == GB_SPILLED;
        if (waits && !waits_for_prompt(schedule, answer) && !try_to_run(schedule, answer))
            return;
    }
}
