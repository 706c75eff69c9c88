/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence of tokens and where the states of its first ones are: in a slot, in host memory, or nowhere.
 * Snapshots are states at earlier positions, without caches, which can be cut.
 */
#ifndef GUMBEL_RUN_SCHEDULE_SEQUENCE_H
#define GUMBEL_RUN_SCHEDULE_SEQUENCE_H

#include "run/schedule/slots.h"

/* Saved states. Sequences that begin alike share those of a snapshot. */
typedef struct gb_saved {
    uint32_t references;
    gb_host_states *states;
    uint64_t *total; /* of bytes, in which these are counted */
} gb_saved;

typedef struct gb_snapshot {
    uint32_t position;
    gb_saved *saved;
} gb_snapshot;

typedef enum gb_place { GB_PLACE_NONE = 0, GB_PLACE_SLOT = 1, GB_PLACE_HOST = 2 } gb_place;

enum { GB_MOST_SNAPSHOTS = 8 };

typedef struct gb_sequence {
    struct gb_sequence *next; /* in the prefix cache, which was used later */
    int32_t *tokens;          /* [count] */
    uint32_t count;           /* that are known: of an answer one more than were run */
    uint32_t prompt_end;      /* tokens from here on were drawn */
    uint32_t position;        /* tokens that were run */
    gb_place place;
    uint32_t slot;   /* SLOT */
    gb_saved *saved; /* HOST */
    uint32_t snapshot_count;
    gb_snapshot snapshots[GB_MOST_SNAPSHOTS]; /* ascending */
} gb_sequence;

/* A sequence of a prompt, with room for so many tokens in all. NULL where there is no memory. */
gb_sequence *gb_sequence_create(const int32_t *prompt, uint32_t prompt_count, uint32_t capacity);

/* The slot is the caller's. NULL is allowed. */
void gb_sequence_destroy(gb_sequence *sequence);

/* The sequence's first tokens as a slot is to know them. */
gb_token_prefix gb_sequence_prefix(const gb_sequence *sequence, uint32_t position);

/* Saves states of the sequence's slot, counted in *total. */
gumbel_status gb_save_states(gb_slots_of_engine *slots, const gb_sequence *sequence, gb_saved_states which,
                             uint64_t *total, gb_saved **saved, gumbel_error *error);

/* Takes a reference back. NULL is allowed. */
void gb_saved_release(gb_saved *saved);

/* Keeps a snapshot, which must lie behind all others; where there is room for no more, in place of the first.
 * Takes over the reference. */
void gb_sequence_add_snapshot(gb_sequence *sequence, uint32_t position, gb_saved *saved);

/* The snapshot at the latest position up to `wanted`; NULL: none. */
const gb_snapshot *gb_sequence_snapshot(const gb_sequence *sequence, uint32_t wanted);

/* Shares the snapshots of another sequence up to a position. */
void gb_sequence_share_snapshots(gb_sequence *sequence, const gb_sequence *with, uint32_t position);

void gb_sequence_drop_snapshots(gb_sequence *sequence);

/* How many tokens a prompt has in common with those that the sequence has run. */
uint32_t gb_sequence_common(const gb_sequence *sequence, const int32_t *prompt, uint32_t count);

#endif
