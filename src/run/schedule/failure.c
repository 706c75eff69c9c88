/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine whose backend has failed for good. The backend's error does not tell whether a request is to
 * blame or the device is lost, so a step that owes nothing to any request is tried.
 */
#include "run/schedule/schedule.h"

/* Whether one token fails too, by itself and in an empty slot. It is drawn from, since a prompt's token alone
 * might be held. Without a free slot there is an answer whose part has run well. */
static bool any_step_fails(gb_serving_schedule *schedule) {
    gb_slots_of_engine *slots = schedule->slots;
    const int32_t token = 0;
    gumbel_result result;
    gumbel_error ignored;
    gb_step_part part = {
        .slot = gb_free_slot(schedule), .tokens = &token, .count = 1, .draws = true, .results = &result};
    if (part.slot == GB_NO_SLOT)
        return false;
    const gumbel_status status = slots->functions->step(slots, &part, 1, &ignored);
    schedule->counts.steps++;
    slots->functions->clear(slots, part.slot);
    return status == GUMBEL_ERROR_BACKEND;
}

void gb_note_step_error(gb_serving_schedule *schedule, const gumbel_error *error) {
    const gumbel_scheduler_options *options = &schedule->options;
    if (error->status != GUMBEL_ERROR_BACKEND || gb_has_failed(schedule) || !any_step_fails(schedule))
        return;
    schedule->failure = *error;
    if (options->on_failure)
        options->on_failure(options->failure_user, error);
}
