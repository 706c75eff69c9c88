/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/states/states.h"

#include "backends/states/saved_rows.h"
#include "base/memory.h"

/* ---- Placing ------------------------------------------------------------------------------------------- */

/* Appends a part of that size and alignment to what a slot needs of an area. */
static bool append_part(uint64_t size, uint64_t alignment, uint64_t *offset, gb_slot_area *area) {
    return gb_align_size(area->bytes, alignment, offset) && gb_add_size(*offset, size, &area->bytes) &&
           area->bytes <= INT64_MAX;
}

static bool place_state(const gb_state *state, uint32_t max_context, uint64_t alignment, gb_states *states,
                        gb_state_place *place) {
    *place = (gb_state_place){.kind = state->kind, .rows = 1, .window = state->window};
    const bool is_recurrent = state->kind == GB_STATE_RECURRENT;
    uint64_t size = gb_state_bytes(state);
    place->row_bytes = size;
    if (!is_recurrent) {
        uint64_t rows = (uint64_t)state->type.shape.dims[0];
        place->row_bytes = size / rows;
        place->rows = state->kind == GB_STATE_CACHE && max_context < rows ? max_context : rows;
    }
    gb_slot_area *area = is_recurrent ? &states->recurrent : &states->caches;
    if (!gb_multiply_size(place->rows, place->row_bytes, &size) ||
        !append_part(size, alignment, &place->offset, area))
        return false;
    return state->kind == GB_STATE_CACHE ||
           append_part(size, alignment, &place->snapshot_offset, &states->snapshots);
}

gumbel_status gb_states_place(const gb_program *program, uint32_t max_context, uint64_t alignment,
                              gb_states *states, gumbel_error *error) {
    bool fits = true;
    states->count = program->state_count;
    for (uint32_t i = 0; i < program->state_count && fits; i++)
        fits = place_state(&program->states[i], max_context, alignment, states, &states->places[i]);
    if (!fits || !gb_align_size(states->caches.bytes, alignment, &states->caches.bytes) ||
        !gb_align_size(states->recurrent.bytes, alignment, &states->recurrent.bytes) ||
        !gb_align_size(states->snapshots.bytes, alignment, &states->snapshots.bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    return GUMBEL_OK;
}

/* ---- Moving -------------------------------------------------------------------------------------------- */

size_t gb_state_used_bytes(const gb_state_place *place, uint32_t position) {
    uint64_t rows = place->kind == GB_STATE_RECURRENT || position > place->rows ? place->rows : position;
    return (size_t)(rows * place->row_bytes);
}

void gb_states_copy(const gb_states *states, uint32_t from, uint32_t to, uint32_t position) {
    for (uint32_t i = 0; i < states->count && from != to; i++) {
        const gb_state_place *place = &states->places[i];
        states->copy(states->user, gb_state_memory(states, place, to), gb_state_memory(states, place, from),
                     gb_state_used_bytes(place, position));
    }
}

/* Between a slot and its snapshot, which has no caches: their rows stay until the slot goes back. */
static void copy_snapshot(const gb_states *states, uint32_t slot, uint32_t position, bool back) {
    for (uint32_t i = 0; i < states->count && states->snapshots.memory; i++) {
        const gb_state_place *place = &states->places[i];
        if (place->kind == GB_STATE_CACHE)
            continue;
        uint8_t *state = gb_state_memory(states, place, slot);
        uint8_t *kept = gb_slot_part(&states->snapshots, slot) + place->snapshot_offset;
        states->copy(states->user, back ? state : kept, back ? kept : state,
                     gb_state_used_bytes(place, position));
    }
}

void gb_states_take_snapshot(const gb_states *states, uint32_t slot, uint32_t position) {
    copy_snapshot(states, slot, position, false);
}

void gb_states_restore_snapshot(const gb_states *states, uint32_t slot, uint32_t position) {
    copy_snapshot(states, slot, position, true);
}

static uint8_t *row_of_position(const gb_states *states, uint32_t slot, uint32_t state, uint64_t position) {
    const gb_state_place *place = &states->places[state];
    return gb_state_memory(states, place, slot) + position % place->rows * place->row_bytes;
}

/* Of a ring those that it has rows for, up to its end and then on from its beginning. */
void gb_states_take_rows(const gb_states *states, uint32_t slot, uint32_t state, const gb_states *others,
                         const gb_rows_of_slot *rows) {
    const gb_state_place *place = &states->places[state];
    uint64_t first = rows->first;
    if (rows->end > first + place->rows)
        first = rows->end - place->rows;
    while (first < rows->end) {
        const uint64_t left = rows->end - first, to_end = place->rows - first % place->rows;
        const uint64_t count = left < to_end ? left : to_end;
        states->copy(states->user, row_of_position(states, slot, state, first),
                     row_of_position(others, rows->slot, rows->state, first),
                     (size_t)(count * place->row_bytes));
        first += count;
    }
}

/* ---- Saving and loading -------------------------------------------------------------------------------- */

static bool is_saved(const gb_state_place *place, gb_saved_states saved) {
    return saved == GB_SAVED_ALL || place->kind != GB_STATE_CACHE;
}

static gb_saved_rows rows_to_save(const gb_state_place *place, uint32_t position) {
    return gb_rows_to_save(place->kind, place->rows, place->window, position);
}

/* Takes off the rows left those that lie in memory one after the other from the first on: how many bytes they
 * have, 0 at the end, and where. */
static uint64_t take_stretch(const gb_states *states, const gb_state_place *place, uint32_t slot,
                             gb_saved_rows *left, uint8_t **at) {
    if (left->count == 0)
        return 0;
    const uint64_t row = left->first % place->rows, to_end = place->rows - row;
    const uint64_t count = left->count < to_end ? left->count : to_end;
    *at = gb_state_memory(states, place, slot) + row * place->row_bytes;
    *left = (gb_saved_rows){left->first + count, left->count - count};
    return count * place->row_bytes;
}

gumbel_status gb_states_save(const gb_states *states, uint32_t slot, uint32_t position, gb_saved_states saved,
                             gb_save_stream write, void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < states->count; i++) {
        if (!is_saved(&states->places[i], saved))
            continue;
        gb_saved_rows left = rows_to_save(&states->places[i], position);
        uint8_t *from;
        for (uint64_t size; (size = take_stretch(states, &states->places[i], slot, &left, &from)) > 0;)
            GB_TRY(write(user, from, size, error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_states_load(const gb_states *states, uint32_t slot, uint32_t position, gb_saved_states saved,
                             gb_load_stream read, void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < states->count; i++) {
        const gb_state_place *place = &states->places[i];
        if (!is_saved(place, saved))
            continue;
        const size_t used = gb_state_used_bytes(place, position);
        gb_saved_rows left = rows_to_save(place, position);
        uint8_t *to;
        if (left.count * place->row_bytes < used) /* rows that were not kept: read by copies of slots alone */
            states->clear(states->user, gb_state_memory(states, place, slot), used);
        for (uint64_t size; (size = take_stretch(states, place, slot, &left, &to)) > 0;)
            GB_TRY(read(user, to, size, error));
    }
    return GUMBEL_OK;
}
