/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot lies before the prompt's end, so that its way to host memory would delay the first token. Where
 * a copy within the device is fast, it is staged in a free slot instead, and goes to host memory when the
 * slot is needed.
 */
#include "base/memory.h"
#include "run/schedule/schedule.h"

static bool has_room(const gb_serving_schedule *schedule, uint32_t position) {
    return gb_running_bytes(schedule) + gb_kept_bytes(schedule) +
               schedule->slots->functions->bytes(schedule->slots, position) <=
           schedule->options.state_bytes;
}

gb_saved *gb_stage_snapshot(gb_serving_schedule *schedule, const gb_sequence *sequence) {
    gb_slots_of_engine *slots = schedule->slots;
    const uint32_t slot = gb_free_slot(schedule);
    if (!slots->stages_snapshots || slot == GB_NO_SLOT || !has_room(schedule, sequence->position))
        return NULL;
    const gb_token_prefix prefix = gb_sequence_prefix(sequence, sequence->position);
    gb_saved *made = gb_allocate(1, sizeof *made);
    if (!made || slots->functions->take(slots, sequence->slot, slot, &prefix, NULL) != GUMBEL_OK) {
        slots->functions->clear(slots, slot);
        gb_free(made);
        return NULL;
    }
    schedule->slot_used[slot] = true;
    schedule->stage.saved[slot] = made;
    *made = (gb_saved){.references = 1,
                       .total = &schedule->host_bytes,
                       .stage = &schedule->stage,
                       .slot = slot,
                       .position = sequence->position,
                       .number = ++schedule->stage.count};
    return made;
}

static gb_saved *oldest(const gb_serving_schedule *schedule) {
    gb_saved *found = NULL;
    for (uint32_t i = 0; i < schedule->slots->count; i++) {
        gb_saved *saved = schedule->stage.saved[i];
        if (saved && (!found || saved->number < found->number))
            found = saved;
    }
    return found;
}

/* Takes a snapshot from all sequences that share it. */
static void forget(gb_serving_schedule *schedule, const gb_saved *saved) {
    for (gb_sequence *kept = schedule->kept; kept; kept = kept->next)
        gb_sequence_forget(kept, saved);
    for (gb_answer *answer = schedule->answers; answer; answer = answer->next)
        if (answer->sequence)
            gb_sequence_forget(answer->sequence, saved);
}

bool gb_unstage(gb_serving_schedule *schedule) {
    gb_slots_of_engine *slots = schedule->slots;
    gb_saved *saved = oldest(schedule);
    if (!saved)
        return false;
    saved->references++; /* forgetting it must not free it */
    const gumbel_status status =
        slots->functions->save(slots, saved->slot, GB_SAVED_WITHOUT_CACHES, &saved->bytes, NULL);
    schedule->host_bytes += saved->bytes.size;
    gb_saved_leave_stage(saved);
    if (status != GUMBEL_OK)
        forget(schedule, saved);
    gb_saved_release(saved);
    gb_trim_host(schedule);
    return true;
}

bool gb_is_stage_full(const gb_serving_schedule *schedule) {
    return gb_free_slot(schedule) == GB_NO_SLOT && oldest(schedule);
}

uint32_t gb_staged_count(const gb_serving_schedule *schedule) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->slots->count; i++)
        count += schedule->stage.saved[i] != NULL;
    return count;
}

uint64_t gb_staged_bytes(const gb_serving_schedule *schedule) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < schedule->slots->count; i++)
        if (schedule->stage.saved[i])
            sum += schedule->slots->functions->bytes(schedule->slots, schedule->stage.saved[i]->position);
    return sum;
}
