/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's states in the memory of slots, which is a backend's: where each lies, which of its bytes count
 * at a position, and the walks over them. Which rows count: of a full cache rows 0 .. position - 1; of a ring
 * all rows up to there, each the latest position that is its row modulo the capacity, or zeros where a
 * session was loaded that had not kept it; of a recurrent state all of it.
 */
#ifndef GUMBEL_BACKENDS_STATES_STATES_H
#define GUMBEL_BACKENDS_STATES_STATES_H

#include "backends/backend.h"

typedef struct gb_state_place {
    gb_state_kind kind;
    uint64_t row_bytes;       /* a recurrent state is one row */
    uint64_t rows;            /* of one slot: max_context, the ring's capacity, or 1 */
    uint64_t window;          /* RING */
    uint64_t offset;          /* in a slot's part of its area */
    uint64_t snapshot_offset; /* in a slot's snapshot; of a cache unused */
} gb_state_place;

/* Memory in which every slot has a part. */
typedef struct gb_slot_area {
    uint64_t bytes;  /* that a slot needs, a multiple of the alignment */
    uint64_t stride; /* from one slot's part to the next one's */
    uint8_t *memory; /* slot 0's part, or NULL */
} gb_slot_area;

/* Copies bytes of areas, which do not overlap; makes bytes of one zero. */
typedef void (*gb_copy_bytes)(void *user, void *to, const void *from, size_t size);
typedef void (*gb_clear_bytes)(void *user, void *at, size_t size);

typedef struct gb_states {
    uint32_t count;
    gb_state_place *places; /* [count], the program's states */
    gb_slot_area caches;    /* with the rings */
    gb_slot_area recurrent;
    gb_slot_area snapshots; /* without memory where none are kept */
    gb_copy_bytes copy;
    gb_clear_bytes clear;
    void *user; /* of both */
} gb_states;

/* Places the program's states one after another; slots have max_context positions. The areas are zero, and
 * states->places has room for program->state_count; strides and memory are given afterwards. Errors: FORMAT
 * (sizes out of range). */
gumbel_status gb_states_place(const gb_program *program, uint32_t max_context, uint64_t alignment,
                              gb_states *states, gumbel_error *error);

/* A slot's part of an area that has memory. */
static inline uint8_t *gb_slot_part(const gb_slot_area *area, uint32_t slot) {
    return area->memory + slot * area->stride;
}

/* The area that a state lies in. */
static inline const gb_slot_area *gb_state_area(const gb_states *states, const gb_state_place *place) {
    return place->kind == GB_STATE_RECURRENT ? &states->recurrent : &states->caches;
}

/* Where a state of a slot is. */
static inline uint8_t *gb_state_memory(const gb_states *states, const gb_state_place *place, uint32_t slot) {
    return gb_slot_part(gb_state_area(states, place), slot) + place->offset;
}

/* Bytes, from the state's first on, that hold something at that position. */
size_t gb_state_used_bytes(const gb_state_place *place, uint32_t position);

/* See backend.h for what these do. Where no snapshots are kept, the last two do nothing. */
void gb_states_copy(const gb_states *states, uint32_t from, uint32_t to, uint32_t position);
void gb_states_take_snapshot(const gb_states *states, uint32_t slot, uint32_t position);
void gb_states_restore_snapshot(const gb_states *states, uint32_t slot, uint32_t position);

/* Copies rows first .. end - 1 of a cache of a slot of other states, or of a ring with as many rows those
 * that it has of them. The two have rows of as many bytes. */
void gb_states_take_rows(const gb_states *states, uint32_t slot, uint32_t state, const gb_states *others,
                         const gb_rows_of_slot *rows);

/* The streams get addresses in the areas. Saving keeps of a ring the last window rows, in the order of
 * positions, so that the bytes do not depend on its capacity; that is all that later tokens can read. */
gumbel_status gb_states_save(const gb_states *states, uint32_t slot, uint32_t position, gb_saved_states saved,
                             gb_save_stream write, void *user, gumbel_error *error);
gumbel_status gb_states_load(const gb_states *states, uint32_t slot, uint32_t position, gb_saved_states saved,
                             gb_load_stream read, void *user, gumbel_error *error);

#endif
