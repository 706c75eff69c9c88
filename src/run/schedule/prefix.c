/* SPDX-License-Identifier: Apache-2.0
 *
 * A prefix can be taken where every kind of state has it: caches anywhere, rings as far back as their slack
 * goes, recurrent states nowhere but at their own position. Snapshots have the states that are not caches,
 * all of one position, so that the longest prefix is the latest of two positions: where all states can be
 * cut, and of a snapshot.
 */
#include "run/schedule/schedule.h"

/* Up to where the sequence's tokens were computed as a cold run of a prompt computes them. */
static uint32_t usable_end(const gb_serving_schedule *schedule, const gb_sequence *sequence) {
    const bool prompt_only = schedule->slots->reuse == GB_REUSE_PROMPT;
    return prompt_only && sequence->prompt_end < sequence->position ? sequence->prompt_end
                                                                    : sequence->position;
}

/* The latest position up to `wanted` that the sequence has the states of. */
static uint32_t position_of(const gb_serving_schedule *schedule, const gb_sequence *sequence, uint32_t wanted,
                            const gb_snapshot **snapshot) {
    const gb_slots_of_engine *slots = schedule->slots;
    const uint32_t slot = sequence->place == GB_PLACE_SLOT ? sequence->slot : GB_NO_SLOT;
    const uint32_t cut = wanted > 0 ? slots->functions->cut(slots, slot, sequence->position, wanted) : 0;
    *snapshot = gb_sequence_snapshot(sequence, wanted);
    if (*snapshot && (*snapshot)->position > cut)
        return (*snapshot)->position;
    *snapshot = NULL;
    return cut;
}

/* Whether the sequence has a longer prefix of the prompt than the best so far. */
static bool is_better(const gb_serving_schedule *schedule, const gb_sequence *sequence,
                      const gb_answer *answer, uint32_t *best) {
    const gb_snapshot *snapshot;
    if (!sequence || sequence == answer->sequence || sequence->place == GB_PLACE_NONE)
        return false;
    const uint32_t end = usable_end(schedule, sequence);
    uint32_t common =
        gb_sequence_common(sequence, answer->sequence->tokens, answer->sequence->prompt_end - 1);
    common = common < end ? common : end;
    if (common <= *best)
        return false;
    const uint32_t position = position_of(schedule, sequence, common, &snapshot);
    if (position <= *best)
        return false;
    *best = position;
    return true;
}

gb_sequence *gb_find_prefix(const gb_serving_schedule *schedule, const gb_answer *answer,
                            uint32_t *position) {
    gb_sequence *best = NULL;
    *position = 0;
    if (!schedule->keeps || answer->no_prefix_cache)
        return NULL;
    for (gb_sequence *kept = schedule->kept; kept; kept = kept->next)
        if (is_better(schedule, kept, answer, position))
            best = kept;
    for (const gb_answer *other = schedule->answers; other; other = other->next)
        if (other->phase == GB_RUNNING && !other->no_prefix_cache &&
            is_better(schedule, other->sequence, answer, position))
            best = other->sequence;
    return best;
}

bool gb_uses_all(const gb_serving_schedule *schedule, const gb_sequence *sequence, uint32_t position) {
    const gb_snapshot *snapshot;
    return position >= position_of(schedule, sequence, usable_end(schedule, sequence), &snapshot);
}

/* Brings the source's states into the slot and cuts them. */
static gumbel_status bring(gb_slots_of_engine *slots, const gb_sequence *source,
                           const gb_token_prefix *prefix, uint32_t slot, gumbel_error *error) {
    if (source->place == GB_PLACE_SLOT)
        return slots->functions->take(slots, source->slot, slot, prefix, error);
    const gb_token_prefix whole = gb_sequence_prefix(source, source->position);
    GB_TRY(slots->functions->load(slots, slot, &whole, GB_SAVED_ALL, source->saved->states, error));
    return slots->functions->take(slots, slot, slot, prefix, error);
}

/* Puts a snapshot's states, if there is one, in place of what could not be cut at the prefix's position. */
static gumbel_status restore(gb_slots_of_engine *slots, const gb_snapshot *snapshot,
                             const gb_token_prefix *prefix, uint32_t slot, gumbel_error *error) {
    if (!snapshot)
        return GUMBEL_OK;
    return slots->functions->load(slots, slot, prefix, GB_SAVED_WITHOUT_CACHES, snapshot->saved->states,
                                  error);
}

gumbel_status gb_cut_back(gb_serving_schedule *schedule, gb_sequence *sequence, uint32_t wanted,
                          gumbel_error *error) {
    gb_slots_of_engine *slots = schedule->slots;
    const gb_snapshot *snapshot;
    const uint32_t position = position_of(schedule, sequence, wanted, &snapshot);
    const gb_token_prefix prefix = gb_sequence_prefix(sequence, position);
    sequence->position = position;
    if (position == 0) {
        slots->functions->clear(slots, sequence->slot);
        return GUMBEL_OK;
    }
    GB_TRY(bring(slots, sequence, &prefix, sequence->slot, error));
    return restore(slots, snapshot, &prefix, sequence->slot, error);
}

gumbel_status gb_begin_with(gb_serving_schedule *schedule, gb_answer *answer, const gb_sequence *source,
                            uint32_t position, uint32_t slot, gumbel_error *error) {
    gb_slots_of_engine *slots = schedule->slots;
    const gb_snapshot *snapshot;
    const gb_token_prefix prefix = gb_sequence_prefix(answer->sequence, position);
    position_of(schedule, source, position, &snapshot);
    gumbel_status status = bring(slots, source, &prefix, slot, error);
    if (status == GUMBEL_OK)
        status = restore(slots, snapshot, &prefix, slot, error);
    if (status != GUMBEL_OK) {
        slots->functions->clear(slots, slot);
        return status;
    }
    gb_sequence_share_snapshots(answer->sequence, source, position);
    answer->sequence->position = position;
    return GUMBEL_OK;
}
