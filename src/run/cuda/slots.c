/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/slots.h"

#include "base/memory.h"
#include "run/cuda/device.h"
#include "run/saved_rows.h"

enum { ALIGNMENT = 256, STAGING_BYTES = 4 << 20 };

static uint8_t *state_of(uint32_t slot, const gb_cuda_state *state) {
    return state->memory + slot * state->slot_bytes;
}

static uint8_t *snapshot_of(const gb_cuda_slots *slots, uint32_t slot, const gb_cuda_state *state) {
    return slots->snapshots + slot * slots->snapshot_bytes + state->snapshot_offset;
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
                        gb_cuda_state *place) {
    *place = (gb_cuda_state){.kind = state->kind, .rows = 1, .window = state->window};
    uint64_t size = gb_state_bytes(state);
    place->row_bytes = size;
    if (state->kind != GB_STATE_RECURRENT) {
        uint64_t rows = (uint64_t)state->type.shape.dims[0];
        place->row_bytes = size / rows;
        place->rows = state->kind == GB_STATE_CACHE && max_context < rows ? max_context : rows;
    }
    uint64_t *end = state->kind == GB_STATE_RECURRENT ? &slots->recurrent_bytes : &slots->cache_bytes;
    if (!gb_multiply_size(place->rows, place->row_bytes, &size) || !append_part(size, &place->offset, end))
        return false;
    return state->kind == GB_STATE_CACHE ||
           append_part(size, &place->snapshot_offset, &slots->snapshot_bytes);
}

static gumbel_status reserve(uint64_t slot_count, uint64_t slot_bytes, const char *what, uint8_t **memory,
                             gumbel_error *error) {
    uint64_t size;
    void *made = NULL;
    if (!gb_multiply_size(slot_count, slot_bytes, &size) || size > SIZE_MAX / 2)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%llu slots of %llu bytes are more than there can be",
                       (unsigned long long)slot_count, (unsigned long long)slot_bytes);
    gumbel_status status = gb_cuda_allocate(size, what, &made, error);
    *memory = made;
    return status;
}

static gumbel_status place_states(const gb_program *program, uint32_t max_context, gb_cuda_slots *slots,
                                  gumbel_error *error) {
    bool fits = true;
    for (uint32_t i = 0; i < program->state_count && fits; i++)
        fits = place_state(&program->states[i], max_context, slots, &slots->states[i]);
    if (!fits || !gb_align_size(slots->cache_bytes, ALIGNMENT, &slots->cache_bytes) ||
        !gb_align_size(slots->recurrent_bytes, ALIGNMENT, &slots->recurrent_bytes) ||
        !gb_align_size(slots->snapshot_bytes, ALIGNMENT, &slots->snapshot_bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    return GUMBEL_OK;
}

static void point_to_states(gb_cuda_slots *slots) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        gb_cuda_state *state = &slots->states[i];
        const bool is_recurrent = state->kind == GB_STATE_RECURRENT;
        state->memory = (is_recurrent ? slots->recurrent : slots->caches) + state->offset;
        state->slot_bytes = is_recurrent ? slots->recurrent_bytes : slots->cache_bytes;
    }
}

gumbel_status gb_cuda_slots_create(const gb_program *program, const gb_backend_options *options,
                                   cudaStream_t stream, gb_cuda_slots *slots, gumbel_error *error) {
    *slots =
        (gb_cuda_slots){.slot_count = options->slots, .state_count = program->state_count, .stream = stream};
    slots->states = gb_allocate(program->state_count, sizeof *slots->states);
    if (!slots->states)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of states");
    GB_TRY(place_states(program, options->max_context, slots, error));
    GB_TRY(reserve(slots->slot_count, slots->cache_bytes, "the caches of all slots (see --max-context)",
                   &slots->caches, error));
    GB_TRY(reserve((uint64_t)slots->slot_count + GB_CUDA_MOST_AHEAD, slots->recurrent_bytes,
                   "the recurrent states of all slots", &slots->recurrent, error));
    if (options->snapshots)
        GB_TRY(reserve(slots->slot_count, slots->snapshot_bytes, "the snapshots of all slots",
                       &slots->snapshots, error));
    point_to_states(slots);
    void *staging;
    GB_TRY(gb_cuda_allocate_pinned(STAGING_BYTES, "saving sessions", &staging, error));
    slots->staging = staging;
    for (uint32_t slot = 0; slot < slots->slot_count; slot++)
        gb_cuda_slots_reset(slots, slot);
    return GUMBEL_OK;
}

void gb_cuda_slots_destroy(gb_cuda_slots *slots) {
    gb_cuda_free(slots->caches);
    gb_cuda_free(slots->recurrent);
    gb_cuda_free(slots->snapshots);
    gb_cuda_free_pinned(slots->staging);
    gb_free(slots->states);
    *slots = (gb_cuda_slots){0};
}

/* ---- Moving states ------------------------------------------------------------------------------------- */

/* Nothing reads a cache's row before it is written, so only recurrent states have to be made zero. */
void gb_cuda_slots_reset(gb_cuda_slots *slots, uint32_t slot) {
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

void gb_cuda_slots_copy(gb_cuda_slots *slots, uint32_t from, uint32_t to, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && from != to; i++) {
        const gb_cuda_state *state = &slots->states[i];
        copy_bytes(slots, state_of(to, state), state_of(from, state), used_bytes(state, position));
    }
}

void gb_cuda_slots_take_snapshot(gb_cuda_slots *slots, uint32_t slot, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && slots->snapshots; i++) {
        const gb_cuda_state *state = &slots->states[i];
        if (state->kind != GB_STATE_CACHE)
            copy_bytes(slots, snapshot_of(slots, slot, state), state_of(slot, state),
                       used_bytes(state, position));
    }
}

void gb_cuda_slots_restore_snapshot(gb_cuda_slots *slots, uint32_t slot, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && slots->snapshots; i++) {
        const gb_cuda_state *state = &slots->states[i];
        if (state->kind != GB_STATE_CACHE)
            copy_bytes(slots, state_of(slot, state), snapshot_of(slots, slot, state),
                       used_bytes(state, position));
    }
}

/* ---- Saving and loading -------------------------------------------------------------------------------- */

/* How many of the rows left lie in memory one after the other. */
static uint64_t rows_together(const gb_cuda_state *state, gb_saved_rows left) {
    uint64_t to_end = state->rows - left.first % state->rows;
    return left.count < to_end ? left.count : to_end;
}

static gumbel_status save_bytes(const gb_cuda_slots *slots, const uint8_t *from, uint64_t size,
                                gb_save_stream write, void *user, gumbel_error *error) {
    for (uint64_t done = 0; done < size;) {
        size_t part = size - done < STAGING_BYTES ? (size_t)(size - done) : STAGING_BYTES;
        cudaError_t result =
            cudaMemcpyAsync(slots->staging, from + done, part, cudaMemcpyDeviceToHost, slots->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(slots->stream);
        GB_TRY(gb_cuda_check(result, "reading a session's state", error));
        GB_TRY(write(user, slots->staging, part, error));
        done += part;
    }
    return GUMBEL_OK;
}

static gumbel_status load_bytes(const gb_cuda_slots *slots, uint8_t *to, uint64_t size, gb_load_stream read,
                                void *user, gumbel_error *error) {
    for (uint64_t done = 0; done < size;) {
        size_t part = size - done < STAGING_BYTES ? (size_t)(size - done) : STAGING_BYTES;
        GB_TRY(read(user, slots->staging, part, error));
        cudaError_t result =
            cudaMemcpyAsync(to + done, slots->staging, part, cudaMemcpyHostToDevice, slots->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(slots->stream);
        GB_TRY(gb_cuda_check(result, "writing a session's state", error));
        done += part;
    }
    return GUMBEL_OK;
}

static gb_saved_rows rows_of(const gb_cuda_state *state, uint32_t position) {
    return gb_rows_to_save(state->kind, state->rows, state->window, position);
}

gumbel_status gb_cuda_slots_save(const gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                 gb_save_stream write, void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_cuda_state *state = &slots->states[i];
        for (gb_saved_rows left = rows_of(state, position); left.count > 0;) {
            uint64_t count = rows_together(state, left);
            const uint8_t *from = state_of(slot, state) + left.first % state->rows * state->row_bytes;
            GB_TRY(save_bytes(slots, from, count * state->row_bytes, write, user, error));
            left = (gb_saved_rows){left.first + count, left.count - count};
        }
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_load(gb_cuda_slots *slots, uint32_t slot, uint32_t position, gb_load_stream read,
                                 void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_cuda_state *state = &slots->states[i];
        for (gb_saved_rows left = rows_of(state, position); left.count > 0;) {
            uint64_t count = rows_together(state, left);
            uint8_t *to = state_of(slot, state) + left.first % state->rows * state->row_bytes;
            GB_TRY(load_bytes(slots, to, count * state->row_bytes, read, user, error));
            left = (gb_saved_rows){left.first + count, left.count - count};
        }
    }
    return GUMBEL_OK;
}
