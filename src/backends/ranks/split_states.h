/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot's saved states between one stream, whose bytes do not depend on the number of ranks, and a buffer
 * for each rank.
 */
#ifndef GUMBEL_BACKENDS_RANKS_SPLIT_STATES_H
#define GUMBEL_BACKENDS_RANKS_SPLIT_STATES_H

#include "backends/backend.h"
#include "program/shard/shard.h"

/* A rank's bytes, one state after the other. */
typedef struct gb_rank_bytes {
    uint8_t *data;
    size_t size, capacity, at; /* at: how far they have been read or written */
} gb_rank_bytes;

typedef struct gb_split_states {
    const gb_program *program; /* the whole one */
    const gb_shard *shards;    /* [state_count] */
    uint32_t ranks, max_context, position;
    gb_saved_states saved;
    gb_rank_bytes *of; /* [ranks] */
} gb_split_states;

/* Writes what the ranks have saved as one would have. Errors: MEMORY, BACKEND (too few bytes), the stream's.
 */
gumbel_status gb_split_states_join(gb_split_states *states, gb_save_stream write, void *user,
                                   gumbel_error *error);

/* Reads what one has saved into the ranks' buffers. Errors: MEMORY, the stream's. */
gumbel_status gb_split_states_part(gb_split_states *states, gb_load_stream read, void *user,
                                   gumbel_error *error);

/* Appends bytes; false without memory. */
bool gb_rank_bytes_append(gb_rank_bytes *bytes, const void *data, uint64_t size);

#endif
