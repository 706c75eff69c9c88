/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/slots.h"

#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

#include <stdio.h>

enum {
    ALIGNMENT = 256,
    TOGETHER = 256 /* positions that are given memory at once; kernels may read so far past the last one */
};

/* ---- Reserving ----------------------------------------------------------------------------------------- */

static gumbel_status reserve_recurrent(gb_cuda_slots *slots, gumbel_error *error) {
    gb_slot_area *area = &slots->states.recurrent;
    uint64_t size;
    void *memory;
    const uint64_t count = slots->slot_count * (1 + (uint64_t)slots->draft_tokens) + GB_CUDA_MOST_AHEAD;
    if (!gb_multiply_size(count, area->bytes, &size))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    GB_TRY(gb_cuda_allocate(size, "the recurrent states of all slots", &memory, error));
    area->memory = memory;
    area->stride = area->bytes;
    return size == 0 ? GUMBEL_OK /* all of it, because it is copied with what lies between the states */
                     : gb_cuda_check(cudaMemsetAsync(memory, 0, (size_t)size, slots->stream),
                                     "clearing recurrent states", error);
}

static gumbel_status reserve_range(uint32_t slot_count, const char *what, gb_slot_area *area,
                                   gb_cuda_virtual_range *range, gumbel_error *error) {
    GB_TRY(gb_cuda_virtual_range_create(slot_count, area->bytes, what, range, error));
    area->memory = range->memory;
    area->stride = range->slot_bytes;
    return GUMBEL_OK;
}

static void copy_bytes(void *stream, void *to, const void *from, size_t size) {
    if (size > 0)
        cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

static void clear_bytes(void *stream, void *at, size_t size) {
    cudaMemsetAsync(at, 0, size, stream);
}

gumbel_status gb_cuda_slots_create(const gb_program *program, const gb_backend_options *options,
                                   cudaStream_t stream, gb_cuda_slots *slots, gumbel_error *error) {
    gb_states *states = &slots->states;
    *slots = (gb_cuda_slots){.slot_count = options->slots,
                             .draft_tokens = options->draft_tokens,
                             .beyond = gb_is_draft_head(program),
                             .rank = options->rank,
                             .stream = stream};
    states->copy = copy_bytes;
    states->clear = clear_bytes;
    states->user = stream;
    states->places = gb_allocate(program->state_count, sizeof *states->places);
    slots->positions = gb_allocate(options->slots, sizeof *slots->positions);
    slots->is_empty = gb_allocate(options->slots, sizeof *slots->is_empty);
    if (options->draft_tokens > 0 && gb_has_recurrent_state(program))
        slots->drafts = gb_allocate(options->slots, sizeof *slots->drafts);
    const bool lacks_drafts = options->draft_tokens > 0 && gb_has_recurrent_state(program) && !slots->drafts;
    if (!states->places || !slots->positions || !slots->is_empty || lacks_drafts)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the lists of states and slots");
    GB_TRY(gb_states_place(program, options->max_context, ALIGNMENT, states, error));
    GB_TRY(reserve_range(options->slots, "the caches of all slots (see --max-context)", &states->caches,
                         &slots->caches, error));
    if (options->snapshots)
        GB_TRY(reserve_range(options->slots, "the snapshots of all slots", &states->snapshots,
                             &slots->snapshots, error));
    GB_TRY(reserve_recurrent(slots, error));
    void *staging;
    GB_TRY(gb_cuda_allocate_pinned(GB_CUDA_STAGING_BYTES, "saving sessions", &staging, error));
    slots->staging = staging;
    GB_TRY(gb_cuda_host_copies_create(states->caches.bytes + states->recurrent.bytes, stream,
                                      &slots->host_copies, error));
    const uint32_t first = gb_step_tokens_with(options, options->least_chunk);
    GB_TRY(gb_cuda_slots_map(slots, 0, first, error)); /* the first prompt need not wait */
    for (uint32_t slot = 0; slot < slots->slot_count; slot++)
        gb_cuda_slots_reset(slots, slot);
    return GUMBEL_OK;
}

void gb_cuda_slots_destroy(gb_cuda_slots *slots) {
    gb_cuda_virtual_range_destroy(&slots->caches);
    gb_cuda_virtual_range_destroy(&slots->snapshots);
    gb_cuda_free(slots->states.recurrent.memory);
    gb_cuda_free_pinned(slots->staging);
    gb_cuda_host_copies_destroy(&slots->host_copies);
    gb_free(slots->states.places);
    gb_free(slots->positions);
    gb_free(slots->is_empty);
    gb_free(slots->drafts);
    *slots = (gb_cuda_slots){0};
}

/* ---- Giving memory ------------------------------------------------------------------------------------- */

/* Unmaps empty slots but for one, and what else can be done without; false: there was no memory so. */
static bool free_memory(gb_cuda_slots *slots, uint32_t but) {
    const uint64_t before = slots->caches.used_bytes + slots->snapshots.used_bytes;
    cudaStreamSynchronize(slots->stream);
    for (uint32_t slot = 0; slot < slots->slot_count; slot++) {
        if (slot == but || !slots->is_empty[slot])
            continue;
        gb_cuda_virtual_range_unmap(&slots->caches, slot);
        gb_cuda_virtual_range_unmap(&slots->snapshots, slot);
        slots->positions[slot] = 0;
    }
    const bool has_unmapped = slots->caches.used_bytes + slots->snapshots.used_bytes < before;
    return gb_cuda_host_copies_shrink(&slots->host_copies) || has_unmapped;
}

/* Ranks map the same memory at the same time: they free it together, and all try again where any has. */
static bool frees_memory(gb_cuda_slots *slots, uint32_t but) {
    return free_memory(slots, but) || slots->rank.count > 1;
}

static gumbel_status map_states(gb_cuda_slots *slots, uint32_t slot, uint32_t count, gumbel_error *error) {
    char what[96];
    snprintf(what, sizeof what, "the caches of slot %u up to position %u (see --max-context)", slot, count);
    for (uint32_t i = 0; i < slots->states.count; i++) {
        const gb_state_place *state = &slots->states.places[i];
        if (state->kind != GB_STATE_RECURRENT)
            GB_TRY(gb_cuda_virtual_range_map(&slots->caches, slot, state->offset,
                                             gb_state_used_bytes(state, count), what, error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_map(gb_cuda_slots *slots, uint32_t slot, uint32_t count, gumbel_error *error) {
    slots->is_empty[slot] = false;
    if (count + slots->beyond <= slots->positions[slot])
        return GUMBEL_OK;
    const uint32_t rounded = (count + slots->beyond + TOGETHER - 1) / TOGETHER * TOGETHER;
    gumbel_status status = gb_rank_agree(&slots->rank, map_states(slots, slot, rounded, error), error);
    if (status == GUMBEL_ERROR_MEMORY && frees_memory(slots, slot))
        status = gb_rank_agree(&slots->rank, map_states(slots, slot, rounded, error), error);
    if (status == GUMBEL_OK)
        slots->positions[slot] = rounded;
    return status;
}

static gumbel_status map_snapshot(gb_cuda_slots *slots, uint32_t slot, gumbel_error *error) {
    char what[48];
    snprintf(what, sizeof what, "the snapshot of slot %u", slot);
    return gb_cuda_virtual_range_map(&slots->snapshots, slot, 0, slots->states.snapshots.bytes, what, error);
}

/* ---- Moving states ------------------------------------------------------------------------------------- */

void gb_cuda_slots_stand(gb_cuda_slots *slots, uint32_t slot, uint32_t position) {
    if (slots->drafts)
        gb_drafts_reset(&slots->drafts[slot], position);
}

void gb_cuda_slots_place_versions(const gb_cuda_slots *slots, const gb_batch *pass, int32_t *from,
                                  int32_t *to) {
    for (uint32_t n = 0, drafts = 0; n < pass->token_count; n++) {
        const uint32_t slot = (uint32_t)pass->slots[n];
        drafts = slots->drafts && pass->draft[n] ? drafts + 1 : 0;
        from[n] = (int32_t)gb_cuda_slots_version(slots, slot, slots->drafts ? slots->drafts[slot].count : 0);
        to[n] = (int32_t)gb_cuda_slots_version(slots, slot, drafts);
    }
}

void gb_cuda_slots_advance(gb_cuda_slots *slots, const gb_batch *pass) {
    if (slots->drafts)
        gb_drafts_advance(slots->drafts, pass);
}

bool gb_cuda_slots_truncate(gb_cuda_slots *slots, uint32_t slot, uint32_t position) {
    return !slots->drafts || gb_drafts_truncate(&slots->drafts[slot], position);
}

void gb_cuda_slots_settle(gb_cuda_slots *slots, uint32_t slot) {
    if (!slots->drafts)
        return;
    const gb_slot_drafts drafts = slots->drafts[slot];
    gb_cuda_slots_copy_recurrent(slots, gb_cuda_slots_version(slots, slot, drafts.count), slot);
    gb_drafts_reset(&slots->drafts[slot], drafts.position + drafts.count);
}

/* Nothing reads a cache's row before it is written, so only recurrent states have to be zeroed. */
void gb_cuda_slots_reset(gb_cuda_slots *slots, uint32_t slot) {
    const gb_slot_area *area = &slots->states.recurrent;
    slots->is_empty[slot] = true;
    gb_cuda_slots_stand(slots, slot, 0);
    if (area->memory)
        cudaMemsetAsync(gb_slot_part(area, slot), 0, (size_t)area->bytes, slots->stream);
}

void gb_cuda_slots_copy_recurrent(gb_cuda_slots *slots, uint32_t from, uint32_t to) {
    const gb_slot_area *area = &slots->states.recurrent;
    if (area->memory && from != to)
        copy_bytes(slots->stream, gb_slot_part(area, to), gb_slot_part(area, from), (size_t)area->bytes);
}

gumbel_status gb_cuda_slots_copy(gb_cuda_slots *slots, uint32_t from, uint32_t to, uint32_t position,
                                 gumbel_error *error) {
    GB_TRY(gb_cuda_slots_map(slots, to, position, error));
    gb_cuda_slots_settle(slots, from);
    gb_states_copy(&slots->states, from, to, position);
    gb_cuda_slots_stand(slots, to, position);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_take_snapshot(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                          gumbel_error *error) {
    if (!slots->snapshots.memory)
        return GUMBEL_OK;
    gumbel_status status = gb_rank_agree(&slots->rank, map_snapshot(slots, slot, error), error);
    if (status == GUMBEL_ERROR_MEMORY && frees_memory(slots, slot))
        status = gb_rank_agree(&slots->rank, map_snapshot(slots, slot, error), error);
    GB_TRY(status);
    gb_cuda_slots_settle(slots, slot);
    gb_states_take_snapshot(&slots->states, slot, position);
    return GUMBEL_OK;
}

/* The other slot's rows may still be copied there, as those of a fork or a file are. */
gumbel_status gb_cuda_slots_take_rows(gb_cuda_slots *slots, uint32_t slot, uint32_t state,
                                      const gb_cuda_slots *others, const gb_rows_of_slot *rows,
                                      gumbel_error *error) {
    GB_TRY(gb_cuda_check(cudaStreamSynchronize(others->stream), "taking rows of states", error));
    GB_TRY(gb_cuda_slots_map(slots, slot, rows->end, error));
    gb_states_take_rows(&slots->states, slot, state, &others->states, rows);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_copy_to_host(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                         gb_saved_states saved, gb_host_states **states,
                                         gumbel_error *error) {
    gb_cuda_slots_settle(slots, slot);
    return gb_cuda_copy_to_host(&slots->host_copies, &slots->states, slot, position, saved, states, error);
}

gumbel_status gb_cuda_slots_copy_from_host(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                           gb_saved_states saved, const gb_host_states *states,
                                           gumbel_error *error) {
    gb_cuda_slots_stand(slots, slot, position);
    GB_TRY(gb_cuda_slots_map(slots, slot, position, error));
    return gb_cuda_copy_from_host(&slots->host_copies, &slots->states, slot, position, saved, states, error);
}
