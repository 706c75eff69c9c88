/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/sequence.h"

#include "base/memory.h"

#include <string.h>

gb_sequence *gb_sequence_create(const int32_t *prompt, uint32_t prompt_count, uint32_t capacity) {
    gb_sequence *made = gb_allocate(1, sizeof *made);
    int32_t *tokens = gb_allocate(capacity, sizeof *tokens);
    if (!made || !tokens) {
        gb_free(made);
        gb_free(tokens);
        return NULL;
    }
    memcpy(tokens, prompt, prompt_count * sizeof *tokens);
    *made = (gb_sequence){
        .tokens = tokens, .count = prompt_count, .prompt_end = prompt_count, .slot = GB_NO_SLOT};
    return made;
}

void gb_sequence_destroy(gb_sequence *sequence) {
    if (!sequence)
        return;
    gb_sequence_drop_snapshots(sequence);
    gb_saved_release(sequence->saved);
    gb_free(sequence->tokens);
    gb_free(sequence);
}

gb_token_prefix gb_sequence_prefix(const gb_sequence *sequence, uint32_t position) {
    return (gb_token_prefix){
        .tokens = sequence->tokens, .position = position, .prompt_end = sequence->prompt_end};
}

gumbel_status gb_save_states(gb_slots_of_engine *slots, const gb_sequence *sequence, gb_saved_states which,
                             uint64_t *total, gb_saved **saved, gumbel_error *error) {
    gb_saved *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    const gumbel_status status = slots->functions->save(slots, sequence->slot, which, &made->states, error);
    if (status != GUMBEL_OK) {
        gb_free(made);
        return status;
    }
    made->references = 1;
    made->total = total;
    *total += made->states->bytes;
    *saved = made;
    return GUMBEL_OK;
}

void gb_saved_release(gb_saved *saved) {
    if (!saved || --saved->references > 0)
        return;
    *saved->total -= saved->states->bytes;
    gb_host_states_release(saved->states);
    gb_free(saved);
}

void gb_sequence_add_snapshot(gb_sequence *sequence, uint32_t position, gb_saved *saved) {
    if (sequence->snapshot_count == GB_MOST_SNAPSHOTS) {
        gb_saved_release(sequence->snapshots[0].saved);
        memmove(sequence->snapshots, sequence->snapshots + 1,
                --sequence->snapshot_count * sizeof *sequence->snapshots);
    }
    sequence->snapshots[sequence->snapshot_count++] = (gb_snapshot){position, saved};
}

const gb_snapshot *gb_sequence_snapshot(const gb_sequence *sequence, uint32_t wanted) {
    for (uint32_t i = sequence->snapshot_count; i > 0; i--)
        if (sequence->snapshots[i - 1].position <= wanted)
            return &sequence->snapshots[i - 1];
    return NULL;
}

void gb_sequence_share_snapshots(gb_sequence *sequence, const gb_sequence *with, uint32_t position) {
    for (uint32_t i = 0; i < with->snapshot_count && with->snapshots[i].position <= position; i++) {
        with->snapshots[i].saved->references++;
        gb_sequence_add_snapshot(sequence, with->snapshots[i].position, with->snapshots[i].saved);
    }
}

void gb_sequence_drop_snapshots(gb_sequence *sequence) {
    while (sequence->snapshot_count > 0)
        gb_saved_release(sequence->snapshots[--sequence->snapshot_count].saved);
}

uint32_t gb_sequence_common(const gb_sequence *sequence, const int32_t *prompt, uint32_t count) {
    const uint32_t most = sequence->position < count ? sequence->position : count;
    uint32_t common = 0;
    while (common < most && sequence->tokens[common] == prompt[common])
        common++;
    return common;
}
