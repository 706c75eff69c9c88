/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/schedule.h"

/* ---- Counting ------------------------------------------------------------------------------------------ */

static uint64_t bytes_at(const gb_serving_schedule *schedule, uint32_t position) {
    return schedule->slots->functions->bytes(schedule->slots, position);
}

uint64_t gb_answer_bytes(const gb_serving_schedule *schedule, const gb_answer *answer) {
    const uint32_t count = answer->sequence->count;
    return bytes_at(schedule, count > answer->reserved ? count : answer->reserved);
}

uint32_t gb_running_count(const gb_serving_schedule *schedule) {
    uint32_t count = 0;
    for (const gb_answer *answer = schedule->answers; answer; answer = answer->next)
        count += answer->phase == GB_RUNNING;
    return count;
}

uint64_t gb_running_bytes(const gb_serving_schedule *schedule) {
    uint64_t sum = 0;
    for (const gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->phase == GB_RUNNING)
            sum += gb_answer_bytes(schedule, answer);
    return sum;
}

uint64_t gb_kept_bytes(const gb_serving_schedule *schedule) {
    uint64_t sum = 0;
    for (const gb_sequence *sequence = schedule->kept; sequence; sequence = sequence->next)
        if (sequence->place == GB_PLACE_SLOT)
            sum += bytes_at(schedule, sequence->position);
    return sum;
}

/* ---- Slots --------------------------------------------------------------------------------------------- */

uint32_t gb_free_slot(const gb_serving_schedule *schedule) {
    for (uint32_t i = 0; i < schedule->slots->count; i++)
        if (!schedule->slot_used[i])
            return i;
    return GB_NO_SLOT;
}

void gb_vacate(gb_serving_schedule *schedule, gb_sequence *sequence) {
    if (sequence->place != GB_PLACE_SLOT)
        return;
    schedule->slots->functions->clear(schedule->slots, sequence->slot);
    schedule->slot_used[sequence->slot] = false;
    sequence->slot = GB_NO_SLOT;
    sequence->place = GB_PLACE_NONE;
}

/* ---- Kept sequences ------------------------------------------------------------------------------------ */

void gb_unlink_kept(gb_serving_schedule *schedule, const gb_sequence *sequence) {
    gb_sequence **at = &schedule->kept;
    while (*at != sequence)
        at = &(*at)->next;
    *at = sequence->next;
}

void gb_keep(gb_serving_schedule *schedule, gb_sequence *sequence) {
    gb_sequence **at = &schedule->kept;
    while (*at)
        at = &(*at)->next;
    sequence->next = NULL;
    *at = sequence;
}

void gb_drop_kept(gb_serving_schedule *schedule, gb_sequence *sequence) {
    gb_unlink_kept(schedule, sequence);
    gb_vacate(schedule, sequence);
    gb_sequence_destroy(sequence);
}

/* Puts the sequence's states into host memory. On an error they are where they were. */
static gumbel_status move_to_host(gb_serving_schedule *schedule, gb_sequence *sequence, uint64_t *total,
                                  gumbel_error *error) {
    gb_saved *saved;
    GB_TRY(gb_save_states(schedule->slots, sequence, GB_SAVED_ALL, total, &saved, error));
    gb_vacate(schedule, sequence);
    sequence->saved = saved;
    sequence->place = GB_PLACE_HOST;
    return GUMBEL_OK;
}

bool gb_evict(gb_serving_schedule *schedule) {
    gb_sequence *victim = schedule->kept;
    while (victim && (victim->place != GB_PLACE_SLOT || victim == schedule->pinned))
        victim = victim->next;
    if (!victim)
        return false;
    schedule->counts.evictions++;
    if (bytes_at(schedule, victim->position) > schedule->options.host_bytes ||
        move_to_host(schedule, victim, &schedule->host_bytes, NULL) != GUMBEL_OK)
        gb_drop_kept(schedule, victim);
    gb_trim_host(schedule);
    return true;
}

/* Frees host memory of a kept sequence. False: it has none, or may not lose it. */
static bool trim_kept(gb_serving_schedule *schedule, gb_sequence *sequence) {
    if (sequence == schedule->pinned)
        return false;
    if (sequence->place == GB_PLACE_HOST) {
        gb_drop_kept(schedule, sequence);
        return true;
    }
    const bool has_snapshots = sequence->snapshot_count > 0;
    gb_sequence_drop_snapshots(sequence);
    return has_snapshots;
}

static bool trim_any_kept(gb_serving_schedule *schedule) {
    for (gb_sequence *sequence = schedule->kept; sequence; sequence = sequence->next)
        if (trim_kept(schedule, sequence))
            return true;
    return false;
}

static void trim_running(gb_serving_schedule *schedule) {
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->sequence && answer->sequence != schedule->pinned &&
            schedule->host_bytes > schedule->options.host_bytes)
            gb_sequence_drop_snapshots(answer->sequence);
}

void gb_trim_host(gb_serving_schedule *schedule) {
    while (schedule->host_bytes > schedule->options.host_bytes)
        if (!trim_any_kept(schedule)) {
            trim_running(schedule);
            return;
        }
}

/* ---- Running answers ----------------------------------------------------------------------------------- */

/* Of those with the lowest priority the one that came last: the last in order. */
static gb_answer *youngest(const gb_serving_schedule *schedule) {
    gb_answer *found = NULL;
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->phase == GB_RUNNING)
            found = answer;
    return found;
}

bool gb_spill_youngest(gb_serving_schedule *schedule) {
    gumbel_error error;
    gb_answer *answer = youngest(schedule);
    if (gb_running_count(schedule) < 2)
        return false;
    if (move_to_host(schedule, answer->sequence, &schedule->spilled_bytes, &error) == GUMBEL_OK) {
        answer->phase = GB_SPILLED;
        schedule->counts.spills++;
        return true;
    }
    schedule->counts.failed++;
    gb_answer_fail(answer, error.status, error.message, gb_schedule_now(schedule));
    gb_release(schedule, answer, false);
    return true;
}

void gb_fit_memory(gb_serving_schedule *schedule) {
    const uint64_t most = schedule->options.state_bytes;
    while (gb_running_bytes(schedule) + gb_kept_bytes(schedule) > most)
        if (!gb_evict(schedule) && !gb_spill_youngest(schedule))
            return;
}

void gb_release(gb_serving_schedule *schedule, gb_answer *answer, bool keep) {
    gb_sequence *sequence = answer->sequence;
    answer->sequence = NULL;
    schedule->is_short = false;
    if (keep && schedule->keeps && !answer->no_prefix_cache && sequence->place == GB_PLACE_SLOT &&
        sequence->position > 0) {
        gb_keep(schedule, sequence);
        return;
    }
    gb_vacate(schedule, sequence);
    gb_sequence_destroy(sequence);
}
