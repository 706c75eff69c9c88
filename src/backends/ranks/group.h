/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of one backend, and what they do together: each function of backend.h on every rank, by a thread
 * each.
 */
#ifndef GUMBEL_BACKENDS_RANKS_GROUP_H
#define GUMBEL_BACKENDS_RANKS_GROUP_H

#include "backends/backend.h"
#include "backends/ranks/split_states.h"
#include "backends/threads/team.h"

typedef struct gb_rank_backend {
    gb_backend *backend;
    gb_sharded sharded;
    gumbel_error outcome; /* of what was done last */
    int32_t *next;        /* of a rank other than 0, whose tokens nobody reads */
} gb_rank_backend;

typedef struct gb_group {
    gb_backend base;
    gb_backend_functions functions; /* those that the ranks have */
    const gb_program *program;
    uint32_t count, max_context;
    int devices[GB_MOST_RANKS];
    gb_meeting *meeting;
    gb_team *team; /* a thread a rank */
    gb_rank_backend ranks[GB_MOST_RANKS];
    bool has_failed;
} gb_group;

static inline gb_group *gb_group_of(gb_backend *backend) {
    return (gb_group *)backend;
}

/* What every rank does: a function of backend.h, with these arguments. */
typedef struct gb_group_task gb_group_task;
typedef gumbel_status (*gb_group_work)(const gb_group_task *task, gb_rank_backend *rank, uint32_t index,
                                       gumbel_error *error);

struct gb_group_task {
    gb_group *all;
    gb_group_work work;
    const gb_batch *batch;
    gb_batch *result; /* what rank 0's step has made of it */
    uint32_t slot, to, position;
    uint32_t state;
    const gb_rows_of_slot *rows;
    gb_saved_states saved;
    gb_host_states **states; /* [count] */
    gb_rank_bytes *bytes;    /* [count] */
};

/* Runs the task on all ranks. Errors: the first rank's that failed. */
gumbel_status gb_group_run(const gb_group_task *task, gumbel_error *error);

/* A rank that fails is awaited by the others where they meet: they end with its error, which is named after
 * its device. Returns that. */
gumbel_status gb_group_leave(gb_group *group, uint32_t index, gumbel_error *error);

/* slots.c, saved.c: functions of backend.h. */
void gb_group_reset_slot(gb_backend *backend, uint32_t slot);
bool gb_group_truncate_slot(gb_backend *backend, uint32_t slot, uint32_t position);
gumbel_status gb_group_copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                                 gumbel_error *error);
gumbel_status gb_group_take_snapshot(gb_backend *backend, uint32_t slot, uint32_t position,
                                     gumbel_error *error);
void gb_group_restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t position);
gumbel_status gb_group_save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                                 gb_save_stream write, void *user, gumbel_error *error);
gumbel_status gb_group_load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                                 gb_load_stream read, void *user, gumbel_error *error);
gumbel_status gb_group_take_rows(gb_backend *backend, uint32_t slot, uint32_t state,
                                 const gb_rows_of_slot *rows, gumbel_error *error);
gumbel_status gb_group_copy_to_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                    gb_saved_states saved, gb_host_states **states, gumbel_error *error);
gumbel_status gb_group_copy_from_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                      gb_saved_states saved, const gb_host_states *states,
                                      gumbel_error *error);

#endif
