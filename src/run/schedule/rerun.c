/* SPDX-License-Identifier: Apache-2.0
 *
 * Where answers have kernels of their own, a prompt may only begin with what was run as a prompt. So while
 * nobody waits, kept answers are run again as prompts, the one used last first: the next turn finds them
 * done.
 */
#include "run/schedule/schedule.h"

/* An answer's last token was drawn and never run, so that the sequence has one more than its prompt. */
static bool is_half_done(const gb_sequence *sequence) {
    return sequence->position < sequence->prompt_end && sequence->count > sequence->prompt_end;
}

static bool is_due(const gb_serving_schedule *schedule, const gb_sequence *kept) {
    return schedule->slots->reuse == GB_REUSE_PROMPT && kept->place == GB_PLACE_SLOT &&
           (kept->position > kept->prompt_end || is_half_done(kept));
}

static gb_sequence *next_one(const gb_serving_schedule *schedule) {
    gb_sequence *found = NULL;
    for (gb_sequence *kept = schedule->kept; kept; kept = kept->next)
        if (is_due(schedule, kept))
            found = kept;
    return found;
}

uint64_t gb_reruns_due(const gb_serving_schedule *schedule) {
    uint64_t count = 0;
    for (const gb_sequence *kept = schedule->kept; kept; kept = kept->next)
        count += is_due(schedule, kept);
    return count;
}

bool gb_has_rerun(const gb_serving_schedule *schedule) {
    return !schedule->answers && next_one(schedule);
}

/* The sequence becomes a prompt of which the answer is still to be run, as far as a longer prompt could begin
 * with it. */
static gumbel_status begin(gb_serving_schedule *schedule, gb_sequence *sequence, gumbel_error *error) {
    const uint32_t grain = schedule->slots->grain > 1 ? schedule->slots->grain : 1;
    const uint32_t prompt_end = sequence->prompt_end, end = sequence->position - sequence->position % grain;
    if (is_half_done(sequence))
        return GUMBEL_OK;
    sequence->prompt_end = end;
    return gb_cut_back(schedule, sequence, prompt_end < end ? prompt_end : end, error);
}

/* Short, since a request that comes meanwhile waits for it. */
static gumbel_status run_chunk(gb_serving_schedule *schedule, gb_sequence *sequence, gumbel_error *error) {
    gb_slots_of_engine *slots = schedule->slots;
    gb_step_part part = {.slot = sequence->slot,
                         .tokens = sequence->tokens + sequence->position,
                         .count = gb_short_chunk(schedule, sequence->position, sequence->prompt_end,
                                                 slots->short_step_tokens)};
    GB_TRY(slots->functions->step(slots, &part, 1, error));
    schedule->counts.steps++;
    schedule->counts.rerun_tokens += part.count;
    sequence->position += part.count;
    return GUMBEL_OK;
}

void gb_rerun(gb_serving_schedule *schedule) {
    gb_sequence *sequence = next_one(schedule);
    gumbel_error error;
    gumbel_status status = begin(schedule, sequence, &error);
    if (status == GUMBEL_OK && sequence->position < sequence->prompt_end)
        status = run_chunk(schedule, sequence, &error);
    if (status != GUMBEL_OK || sequence->position == 0)
        gb_drop_kept(schedule, sequence);
    if (status != GUMBEL_OK)
        gb_note_step_error(schedule, &error);
}
