/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of one backend, and what they do together: each function of backend.h on every rank, by a thread
 * each, or by the process of each (processes/processes.h).
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

typedef struct gb_group_task gb_group_task;

typedef struct gb_group {
    gb_backend base;
    gb_backend_functions functions; /* those that the ranks have */
    const gb_program *program;
    uint32_t count, max_context;
    uint32_t first, end; /* the ranks of this process: all, or its own */
    int devices[GB_MOST_RANKS];
    gb_meeting *meeting; /* its own, or that of the processes */
    gb_team *team;       /* NULL, or a thread a rank */
    gb_rank_backend ranks[GB_MOST_RANKS];
    bool has_failed;
    void (*run)(const gb_group_task *task); /* on all ranks, which keep their outcomes */
    gumbel_process_group *processes;        /* NULL: all ranks are in this process */
    uint32_t number;                        /* of the group among those of the processes */
} gb_group;

static inline gb_group *gb_group_of(gb_backend *backend) {
    return (gb_group *)backend;
}

/* Functions of backend.h that every rank runs: gb_rank_NAME (create.c, steps.c, slots.c, saved.c). */
#define GB_GROUP_FUNCTIONS(FUNCTION)                                                                         \
    FUNCTION(CREATE, create)                                                                                 \
    FUNCTION(DESTROY, destroy)                                                                               \
    FUNCTION(STEP, step)                                                                                     \
    FUNCTION(RESET_SLOT, reset_slot)                                                                         \
    FUNCTION(TRUNCATE_SLOT, truncate_slot)                                                                   \
    FUNCTION(COPY_SLOT, copy_slot)                                                                           \
    FUNCTION(TAKE_SNAPSHOT, take_snapshot)                                                                   \
    FUNCTION(RESTORE_SNAPSHOT, restore_snapshot)                                                             \
    FUNCTION(SAVE_SLOT, save_slot)                                                                           \
    FUNCTION(LOAD_SLOT, load_slot)                                                                           \
    FUNCTION(COPY_TO_HOST, copy_to_host)                                                                     \
    FUNCTION(COPY_FROM_HOST, copy_from_host)                                                                 \
    FUNCTION(TAKE_ROWS, take_rows)                                                                           \
    FUNCTION(FREE_BYTES, free_bytes)

typedef enum gb_group_function {
#define GB_GROUP_NUMBER(NAME, name) GB_GROUP_##NAME,
    GB_GROUP_FUNCTIONS(GB_GROUP_NUMBER) GB_GROUP_FUNCTION_COUNT
} gb_group_function;

/* What ranks are made with. */
typedef struct gb_group_creation {
    gb_backend_create create;
    gb_backend_options options;
    int64_t least_weights;
    const char *backend; /* its name; only processes have one */
} gb_group_creation;

/* What every rank does: a function of backend.h, with these arguments. */
struct gb_group_task {
    gb_group *all;
    gb_group_function function;
    const gb_group_creation *creation;
    const gb_batch *batch;
    gb_batch *result; /* what rank 0's step has made of it */
    uint32_t slot, to, position, state;
    const gb_rows_of_slot *rows; /* of another group's backend */
    gb_saved_states saved;
    gb_host_states **states; /* [count] */
    gb_rank_bytes *bytes;    /* [count] */
    uint64_t *free_bytes;    /* [count] */
};

typedef gumbel_status (*gb_rank_function)(const gb_group_task *task, gb_rank_backend *rank, uint32_t index,
                                          gumbel_error *error);

/* Runs the task on all ranks. Errors: the first rank's that failed. */
gumbel_status gb_group_run(const gb_group_task *task, gumbel_error *error);

/* Runs it on one rank, of this process, and keeps the outcome. */
void gb_group_run_on(const gb_group_task *task, uint32_t index);

/* A rank that fails is awaited by the others where they meet: they end with its error, which is named after
 * its device. Returns that. */
gumbel_status gb_group_leave(gb_group *group, uint32_t index, gumbel_error *error);

/* A group for that program, whose ranks are all in this process and not made yet: the caller sets what else
 * it has. NULL without memory. gb_group_free wants its backends destroyed. */
gb_group *gb_group_new(const gb_program *program, uint32_t max_context, uint32_t count);
void gb_group_free(gb_group *group);

/* Shards the program for the ranks of this process. Errors: those of gb_program_shard. */
gumbel_status gb_group_shard(gb_group *group, int64_t least_weights, gumbel_error *error);

/* A profile that nobody reads: steps are timed on all ranks or on none. */
void gb_ignore_profile(void *user, const char *op, const char *weight, double seconds);

#define GB_RANK_FUNCTION(NAME, name)                                                                         \
    gumbel_status gb_rank_##name(const gb_group_task *task, gb_rank_backend *rank, uint32_t index,           \
                                 gumbel_error *error);
GB_GROUP_FUNCTIONS(GB_RANK_FUNCTION)

/* steps.c, slots.c, saved.c: functions of backend.h. */
gumbel_status gb_group_step(gb_backend *backend, gb_batch *batch, gumbel_error *error);
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
