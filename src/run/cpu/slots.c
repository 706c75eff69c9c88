/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/slots.h"

#include "base/memory.h"
#include "run/saved_rows.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

#if !defined(MAP_ANONYMOUS)
#define MAP_ANONYMOUS MAP_ANON
#endif
#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

static uint8_t *state_of(const gb_slots *slots, uint32_t slot, const gb_state_place *state) {
    return slots->memory + slot * slots->slot_bytes + state->offset;
}

static uint8_t *snapshot_of(const gb_slots *slots, uint32_t slot, const gb_state_place *state) {
    return slots->snapshots + slot * slots->snapshot_bytes + state->snapshot_offset;
}

/* Bytes, from the state's first on, that hold something at that position. */
static size_t used_bytes(const gb_state_place *state, uint32_t position) {
    uint64_t rows = state->kind == GB_STATE_RECURRENT || position > state->rows ? state->rows : position;
    return (size_t)(rows * state->row_bytes);
}

/* ---- Reserving ----------------------------------------------------------------------------------------- */

/* Appends a part of that size and alignment at *end. */
static bool append_part(uint64_t size, uint64_t alignment, uint64_t *offset, uint64_t *end) {
    return gb_align_size(*end, alignment, offset) && gb_add_size(*offset, size, end) && *end <= INT64_MAX;
}

static bool place_state(const gb_state *state, uint32_t max_context, gb_slots *slots, gb_state_place *place) {
    *place = (gb_state_place){.kind = state->kind, .rows = 1, .window = state->window};
    uint64_t size = gb_state_bytes(state);
    place->row_bytes = size;
    if (state->kind != GB_STATE_RECURRENT) {
        uint64_t rows = (uint64_t)state->type.shape.dims[0];
        place->row_bytes = size / rows;
        place->rows = state->kind == GB_STATE_CACHE && max_context < rows ? max_context : rows;
    }
    if (!gb_multiply_size(place->rows, place->row_bytes, &size) ||
        !append_part(size, ALIGNMENT, &place->offset, &slots->slot_bytes))
        return false;
    return state->kind == GB_STATE_CACHE ||
           append_part(size, ALIGNMENT, &place->snapshot_offset, &slots->snapshot_bytes);
}

static gumbel_status reserve(uint64_t slot_count, uint64_t slot_bytes, uint8_t **memory,
                             gumbel_error *error) {
    uint64_t size;
    if (!gb_multiply_size(slot_count, slot_bytes, &size) || size > SIZE_MAX / 2)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%llu slots of %llu bytes are more than there can be",
                       (unsigned long long)slot_count, (unsigned long long)slot_bytes);
    if (size == 0)
        return GUMBEL_OK;
    void *mapped =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return gb_fail(error, GUMBEL_ERROR_MEMORY,
                       "no memory for the caches of %llu slots, %llu bytes each (see --max-context)",
                       (unsigned long long)slot_count, (unsigned long long)slot_bytes);
#if defined(MADV_HUGEPAGE) /* attention reads a few rows of each small page: it would wait for page tables   \
                            */
    madvise(mapped, (size_t)size, MADV_HUGEPAGE);
#endif
    *memory = mapped;
    return GUMBEL_OK;
}

static gumbel_status place_states(const gb_program *program, uint32_t max_context, gb_slots *slots,
                                  gumbel_error *error) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool fits = true;
    for (uint32_t i = 0; i < program->state_count && fits; i++)
        fits = place_state(&program->states[i], max_context, slots, &slots->states[i]);
    if (!fits || !gb_align_size(slots->slot_bytes, page, &slots->slot_bytes) ||
        !gb_align_size(slots->snapshot_bytes, page, &slots->snapshot_bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    return GUMBEL_OK;
}

gumbel_status gb_slots_create(const gb_program *program, uint32_t slot_count, uint32_t max_context,
                              bool snapshots, gb_slots *slots, gumbel_error *error) {
    *slots = (gb_slots){.slot_count = slot_count, .state_count = program->state_count};
    slots->states = gb_allocate(program->state_count, sizeof *slots->states);
    if (!slots->states)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of states");
    gumbel_status status = place_states(program, max_context, slots, error);
    if (status == GUMBEL_OK)
        status = reserve(slot_count, slots->slot_bytes, &slots->memory, error);
    if (status == GUMBEL_OK && snapshots)
        status = reserve(slot_count, slots->snapshot_bytes, &slots->snapshots, error);
    if (status != GUMBEL_OK)
        gb_slots_destroy(slots);
    return status;
}

void gb_slots_destroy(gb_slots *slots) {
    if (slots->memory)
        munmap(slots->memory, (size_t)(slots->slot_count * slots->slot_bytes));
    if (slots->snapshots)
        munmap(slots->snapshots, (size_t)(slots->slot_count * slots->snapshot_bytes));
    gb_free(slots->states);
    *slots = (gb_slots){0};
}

/* ---- Moving states ------------------------------------------------------------------------------------- */

/* Gives the memory back to the system, which makes it zero on Linux; elsewhere only a recurrent state has to
 * be made so, since nothing reads a cache's row before it is written. */
void gb_slots_reset(gb_slots *slots, uint32_t slot) {
    if (slots->memory)
        madvise(slots->memory + slot * slots->slot_bytes, (size_t)slots->slot_bytes, MADV_DONTNEED);
    for (uint32_t i = 0; i < slots->state_count; i++)
        if (slots->states[i].kind == GB_STATE_RECURRENT)
            memset(state_of(slots, slot, &slots->states[i]), 0, (size_t)slots->states[i].row_bytes);
}

void gb_slots_copy(gb_slots *slots, uint32_t from, uint32_t to, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && from != to; i++) {
        const gb_state_place *state = &slots->states[i];
        memcpy(state_of(slots, to, state), state_of(slots, from, state), used_bytes(state, position));
    }
}

void gb_slots_take_snapshot(gb_slots *slots, uint32_t slot, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && slots->snapshots; i++) {
        const gb_state_place *state = &slots->states[i];
        if (state->kind != GB_STATE_CACHE)
            memcpy(snapshot_of(slots, slot, state), state_of(slots, slot, state),
                   used_bytes(state, position));
    }
}

void gb_slots_restore_snapshot(gb_slots *slots, uint32_t slot, uint32_t position) {
    for (uint32_t i = 0; i < slots->state_count && slots->snapshots; i++) {
        const gb_state_place *state = &slots->states[i];
        if (state->kind != GB_STATE_CACHE)
            memcpy(state_of(slots, slot, state), snapshot_of(slots, slot, state),
                   used_bytes(state, position));
    }
}

/* ---- Saving and loading -------------------------------------------------------------------------------- */

static gb_saved_rows rows_to_save(const gb_state_place *state, uint32_t position) {
    return gb_rows_to_save(state->kind, state->rows, state->window, position);
}

/* How many of the rows left lie in memory one after the other. */
static uint64_t rows_together(const gb_state_place *state, gb_saved_rows left) {
    uint64_t to_end = state->rows - left.first % state->rows;
    return left.count < to_end ? left.count : to_end;
}

gumbel_status gb_slots_save(const gb_slots *slots, uint32_t slot, uint32_t position, gb_save_stream write,
                            void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_state_place *state = &slots->states[i];
        for (gb_saved_rows left = rows_to_save(state, position); left.count > 0;) {
            uint64_t count = rows_together(state, left);
            const uint8_t *from = state_of(slots, slot, state) + left.first % state->rows * state->row_bytes;
            GB_TRY(write(user, from, count * state->row_bytes, error));
            left = (gb_saved_rows){left.first + count, left.count - count};
        }
    }
    return GUMBEL_OK;
}

gumbel_status gb_slots_load(gb_slots *slots, uint32_t slot, uint32_t position, gb_load_stream read,
                            void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_state_place *state = &slots->states[i];
        for (gb_saved_rows left = rows_to_save(state, position); left.count > 0;) {
            uint64_t count = rows_together(state, left);
            uint8_t *to = state_of(slots, slot, state) + left.first % state->rows * state->row_bytes;
            GB_TRY(read(user, to, count * state->row_bytes, error));
            left = (gb_saved_rows){left.first + count, left.count - count};
        }
    }
    return GUMBEL_OK;
}
