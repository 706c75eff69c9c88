/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/slots.h"

#include "base/memory.h"
#include "run/cuda/device.h"

#include <stdio.h>

enum {
    ALIGNMENT = 256,
    TOGETHER = 256 /* positions that are given memory at once; kernels may read so far past the last one */
};

static uint8_t *snapshot_of(const gb_cuda_slots *slots, uint32_t slot, const gb_cuda_state *state) {
    return slots->snapshots.memory + slot * slots->snapshots.slot_bytes + state->snapshot_offset;
}

/* Bytes, from the state's first on, that hold something at that position. */
static size_t used_bytes(const gb_cuda_state *state, uint32_t position) {
    uint64_t rows = state->kind == GB_STATE_RECURRENT || position > state->rows ? state->rows : position;
    return (size_t)(rows * state->row_bytes);
}

/* ---- Reserving ----------------------------------------------------------------------------------------- */

/* Appends a part of that size at *end. */
static bool append_part(uint64_t size, uint64_t *offset, uint64_t *end) {
    return gb_align_size(*end, ALIGNMENT, offset) && gb_add_size(*offset, size, end) && *end <= INT64_MAX;
}

static bool place_state(const gb_state *state, uint32_t max_context, gb_cuda_slots *slots,
                        uint64_t *cache_bytes, gb_cuda_state *place) {
    *place = (gb_cuda_state){.kind = state->kind, .rows = 1, .window = state->window};
    uint64_t size = gb_state_bytes(state);
    place->row_bytes = size;
    if (state->kind != GB_STATE_RECURRENT) {
        uint64_t rows = (uint64_t)state->type.shape.dims[0];
        place->row_bytes = size / rows;
        place->rows = state->kind == GB_STATE_CACHE && max_context < rows ? max_context : rows;
    }
    uint64_t *end = state->kind == GB_STATE_RECURRENT ? &slots->recurrent_bytes : cache_bytes;
    if (!gb_multiply_size(place->rows, place->row_bytes, &size) || !append_part(size, &place->offset, end))
        return false;
    return state->kind == GB_STATE_CACHE ||
           append_part(size, &place->snapshot_offset, &slots->snapshot_bytes);
}

static gumbel_status place_states(const gb_program *program, uint32_t max_context, gb_cuda_slots *slots,
                                  uint64_t *cache_bytes, gumbel_error *error) {
    bool fits = true;
    *cache_bytes = 0;
    for (uint32_t i = 0; i < program->state_count && fits; i++)
        fits = place_state(&program->states[i], max_context, slots, cache_bytes, &slots->states[i]);
    if (!fits || !gb_align_size(*cache_bytes, ALIGNMENT, cache_bytes) ||
        !gb_align_size(slots->recurrent_bytes, ALIGNMENT, &slots->recurrent_bytes) ||
        !gb_align_size(slots->snapshot_bytes, ALIGNMENT, &slots->snapshot_bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    return GUMBEL_OK;
}

static gumbel_status reserve_recurrent(gb_cuda_slots *slots, gumbel_error *error) {
    uint64_t size;
    void *memory;
    if (!gb_multiply_size((uint64_t)slots->slot_count + GB_CUDA_MOST_AHEAD, slots->recurrent_bytes, &size))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    GB_TRY(gb_cuda_allocate(size, "the recurrent states of all slots", &memory, error));
    slots->recurrent = memory;
    return size == 0 ? GUMBEL_OK /* all of it, because it is copied with what lies between the states */
                     : gb_cuda_check(cudaMemsetAsync(memory, 0, (size_t)size, slots->stream),
                                     "clearing recurrent states", error);
}

static void point_to_states(gb_cuda_slots *slots) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        gb_cuda_state *state = &slots->states[i];
        const bool is_recurrent = state->kind == GB_STATE_RECURRENT;
        state->memory = (is_recurrent ? slots->recurrent : slots->caches.memory) + state->offset;
        state->slot_bytes = is_recurrent ? slots->recurrent_bytes : slots->caches.slot_bytes;
    }
}

gumbel_status gb_cuda_slots_create(const gb_program *program, const gb_backend_options *options,
                                   cudaStream_t stream, gb_cuda_slots *slots, gumbel_error *error) {
    *slots =
        (gb_cuda_slots){.slot_count = options->slots, .state_count = program->state_count, .stream = stream};
    slots->states = gb_allocate(program->state_count, sizeof *slots->states);
    slots->positions = gb_allocate(options->slots, sizeof *slots->positions);
    slots->is_empty = gb_allocate(options->slots, sizeof *slots->is_empty);
    if (!slots->states || !slots->positions || !slots->is_empty)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the lists of states and slots");
    uint64_t cache_bytes;
    GB_TRY(place_states(program, options->max_context, slots, &cache_bytes, error));
    GB_TRY(gb_cuda_region_create(options->slots, cache_bytes, "the caches of all slots (see --max-context)",
                                 &slots->caches, error));
    if (options->snapshots)
        GB_TRY(gb_cuda_region_create(options->slots, slots->snapshot_bytes, "the snapshots of all slots",
                                     &slots->snapshots, error));
    GB_TRY(reserve_recurrent(slots, error));
    point_to_states(slots);
    void *staging;
    GB_TRY(gb_cuda_allocate_pinned(GB_CUDA_STAGING_BYTES, "saving sessions", &staging, error));
    slots->staging = staging;
    GB_TRY(gb_cuda_slots_cover(slots, 0, options->step_tokens, error)); /* the first prompt need not wait */
    for (uint32_t slot = 0; slot < slots->slot_count; slot++)
        gb_cuda_slots_reset(slots, slot);
    return GUMBEL_OK;
}

void gb_cuda_slots_destroy(gb_cuda_slots *slots) {
    gb_cuda_region_destroy(&slots->caches);
    gb_cuda_region_destroy(&slots->snapshots);
    gb_cuda_free(slots->recurrent);
    gb_cuda_free_pinned(slots->staging);
    gb_free(slots->states);
    gb_free(slots->positions);
    gb_free(slots->is_empty);
    *slots = (gb_cuda_slots){0};
}

/* ---- Giving memory ------------------------------------------------------------------------------------- */

/* Takes the memory of empty slots back, but for one's; false: they had none. */
static bool empty_slots(gb_cuda_slots *slots, uint32_t but) {
    const uint64_t before = slots->caches.covered_bytes + slots->snapshots.covered_bytes;
    cudaStreamSynchronize(slots->stream);
    for (uint32_t slot = 0; slot < slots->slot_count; slot++) {
        if (slot == but || !slots->is_empty[slot])
            continue;
        gb_cuda_region_uncover(&slots->caches, slot);
        gb_cuda_region_uncover(&slots->snapshots, slot);
        slots->positions[slot] = 0;
    }
    return slots->caches.covered_bytes + slots->snapshots.covered_bytes < before;
}

static gumbel_status cover_states(gb_cuda_slots *slots, uint32_t slot, uint32_t count, gumbel_error *error) {
    char what[96];
    snprintf(what, sizeof what, "the caches of slot %u up to position %u (see --max-context)", slot, count);
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_cuda_state *state = &slots->states[i];
        if (state->kind != GB_STATE_RECURRENT)
            GB_TRY(gb_cuda_region_cover(&slots->caches, slot, state->offset, used_bytes(state, count), what,
                                        error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_cover(gb_cuda_slots *slots, uint32_t slot, uint32_t count, gumbel_error *error) {
    slots->is_empty[slot] = false;
    if (count <= slots->positions[slot])
        return GUMBEL_OK;
    const uint32_t rounded = (count + TOGETHER - 1) / TOGETHER * TOGETHER;
    gumbel_status status = cover_states(slots, slot, rounded, error);
    if (status == GUMBEL_ERROR_MEMORY && empty_slots(slots, slot))
        status = cover_states(slots, slot, rounded, error);
    if (status == GUMBEL_OK)
        slots->positions[slot] = rounded;
    return status;
}

static gumbel_status cover_snapshot(gb_cuda_slots *slots, uint32_t slot, gumbel_error *error) {
    char what[48];
    snprintf(what, sizeof what, "the snapshot of slot %u", slot);
    return gb_cuda_region_cover(&slots->snapshots, slot, 0, slots->snapshot_bytes, what, error);
}

/* ---- Moving states ------------------------------------------------------------------------------------- */

/* Nothing reads a cache's row before it is written, so only recurrent states have to be made zero. */
void gb_cuda_slots_reset(gb_cuda_slots *slots, uint32_t slot) {
    slots->is_empty[slot] = true;
    if (slots->recurrent)
        cudaMemsetAsync(slots->recurrent + slot * slots->recurrent_bytes, 0, (size_t)slots->recurrent_bytes,
                        slots->stream);
}

static void copy_bytes(const gb_cuda_slots *slots, void *to, const void *from, size_t size) {
    if (size > 0)
        cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, slots->stream);
}

void gb_cuda_slots_copy_recurrent(gb_cuda_slots *slots, uint32_t from, uint32_t to) {
    if (slots->recurrent && from != to)
        copy_bytes(slots, slots->recurrent + to * slots->recurrent_bytes,
                   slots->recurrent + from * slots->recurrent_bytes, (size_t)slots->recurrent_bytes);
}

gumbel_status gb_cuda_slots_copy(gb_cuda_slots *slots, uint32_t from, uint32_t to, uint32_t position,
                                 gumbel_error *error) {
    GB_TRY(gb_cuda_slots_cover(slots, to, position, error));
    for (uint32_t i = 0; i < slots->state_count && from != to; i++) {
        const gb_cuda_state *state = &slots->states[i];
        copy_bytes(slots, gb_cuda_state_of(to, state), gb_cuda_state_of(from, state),
                   used_bytes(state, position));
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_take_snapshot(gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                          gumbel_error *error) {
    if (!slots->snapshots.memory)
        return GUMBEL_OK;
    gumbel_status status = cover_snapshot(slots, slot, error);
    if (status == GUMBEL_ERROR_MEMORY && empty_slots(slots, slot))
        status = cover_snapshot(slots, slot, error);
    GB_TRY(status);
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_cuda_state *state = &slots->states[i];
        if (state->kind != GB_STATE_CACHE)
            copy_bytes(slots, snapshot_of(slots, slot, state), gb_cuda_state_of(slot, state),
                       used_bytes(state, position));
    }
    return GUMBEL_OK;
}

void gb_cuda_slots_restore_snapshot(gb_cuda_slots *slots, uint32_t slot, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && slots->snapshots.memory; i++) {
        const gb_cuda_state *state = &slots->states[i];
        if (state->kind != GB_STATE_CACHE)
            copy_bytes(slots, gb_cuda_state_of(slot, state), snapshot_of(slots, slot, state),
                       used_bytes(state, position));
    }
}
