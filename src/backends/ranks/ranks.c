/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/ranks.h"

#include "backends/ranks/group.h"
#include "backends/ranks/processes/processes.h"
#include "backends/ranks/processes/run_on_all.h"

#include <stdio.h>
#include <string.h>

static gumbel_status measure_limits(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error) {
    gb_backend *first = gb_group_of(backend)->ranks[0].backend;
    return first->functions->measure_limits(first, limits, error);
}

gumbel_status gb_rank_free_bytes(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                 gumbel_error *error) {
    (void)error;
    t->free_bytes[index] = rank->backend->functions->free_bytes(rank->backend);
    return GUMBEL_OK;
}

/* The ranks' states grow alike, so that the fullest device counts for all. */
static uint64_t free_bytes(gb_backend *backend) {
    gb_group *all = gb_group_of(backend);
    uint64_t least = UINT64_MAX, bytes[GB_MOST_RANKS] = {0};
    gumbel_error ignored;
    gb_group_run(&(gb_group_task){.all = all, .function = GB_GROUP_FREE_BYTES, .free_bytes = bytes},
                 &ignored);
    for (uint32_t r = 0; r < all->count; r++)
        least = bytes[r] < least ? bytes[r] : least;
    return least * all->count;
}

/* Without a team it has no ranks yet. */
static void destroy(gb_backend *backend) {
    gumbel_error ignored;
    gb_group *all = gb_group_of(backend);
    if (all->team || all->processes)
        gb_group_run(&(gb_group_task){.all = all, .function = GB_GROUP_DESTROY}, &ignored);
    if (all->processes)
        gb_processes_forget_group(all->processes, all);
    gb_group_free(all);
}

/* ---- Making them --------------------------------------------------------------------------------------- */

static const gb_backend_functions all_functions = {
    .destroy = destroy,
    .step = gb_group_step,
    .reset_slot = gb_group_reset_slot,
    .truncate_slot = gb_group_truncate_slot,
    .copy_slot = gb_group_copy_slot,
    .take_snapshot = gb_group_take_snapshot,
    .restore_snapshot = gb_group_restore_snapshot,
    .save_slot = gb_group_save_slot,
    .load_slot = gb_group_load_slot,
    .copy_to_host = gb_group_copy_to_host,
    .copy_from_host = gb_group_copy_from_host,
    .take_rows = gb_group_take_rows,
    .measure_limits = measure_limits,
    .free_bytes = free_bytes,
};

/* What the ranks have, the whole has; but states in the host memory of other processes cannot be named. */
static void take_functions(gb_group *all) {
    const gb_backend_functions *own = all->ranks[0].backend->functions;
    all->functions.truncate_slot = own->truncate_slot ? gb_group_truncate_slot : NULL;
    all->functions.copy_to_host = own->copy_to_host && !all->processes ? gb_group_copy_to_host : NULL;
    all->functions.copy_from_host = own->copy_from_host && !all->processes ? gb_group_copy_from_host : NULL;
    all->functions.take_rows = own->take_rows ? gb_group_take_rows : NULL;
    all->functions.measure_limits = own->measure_limits ? measure_limits : NULL;
    all->functions.free_bytes = own->free_bytes ? free_bytes : NULL;
}

static void take_facts(gb_group *all) {
    const gb_backend *first = all->ranks[0].backend;
    for (uint32_t r = all->first; r < all->end; r++)
        all->base.threads += all->ranks[r].backend->threads;
    all->base.most_following = first->most_following;
    all->base.prefill_chunk = first->prefill_chunk;
    all->base.reuse = first->reuse;
    all->base.grain = first->grain;
    snprintf(all->base.description, sizeof all->base.description, "%u x %.80s", all->count,
             first->description);
}

static void run_on(void *user, unsigned index) {
    gb_group_run_on(user, index);
}

static void run_by_threads(const gb_group_task *t) {
    gb_team_run(t->all->team, run_on, (void *)(uintptr_t)t);
}

static gumbel_status join_processes(gb_group *all, const gb_devices *devices, gumbel_error *error) {
    GB_TRY(gb_processes_add_group(devices->processes, all, error));
    all->processes = devices->processes;
    all->run = gb_processes_run;
    all->meeting = gb_processes_meeting(devices->processes);
    all->first = 0;
    all->end = 1;
    return GUMBEL_OK;
}

static gumbel_status start_threads(gb_group *all, gumbel_error *error) {
    all->run = run_by_threads;
    GB_TRY(gb_meeting_create(all->count, &all->meeting, error));
    return gb_team_create(all->count, &all->team, error);
}

static gumbel_status prepare(gb_group *all, const gb_group_creation *creation, const gb_devices *devices,
                             gumbel_error *error) {
    const gb_group_task task = {.all = all, .function = GB_GROUP_CREATE, .creation = creation};
    if (devices->processes)
        GB_TRY(join_processes(all, devices, error));
    GB_TRY(gb_group_shard(all, devices->least_weights, error));
    if (!devices->processes)
        GB_TRY(start_threads(all, error));
    GB_TRY(gb_group_run(&task, error));
    take_functions(all);
    take_facts(all);
    return GUMBEL_OK;
}

gumbel_status gb_ranks_backend_create(gb_backend_create create, const gb_program *program,
                                      const gb_backend_options *options, const gb_devices *devices,
                                      gb_backend **backend, gumbel_error *error) {
    const uint32_t count = devices->processes ? gb_processes_count(devices->processes) : devices->count;
    *backend = NULL;
    if (count > GB_MOST_RANKS)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%u devices: expected at most %d", count,
                       (int)GB_MOST_RANKS);
    gb_group *all = gb_group_new(program, options->max_context, count);
    if (!all)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a backend");
    all->functions = all_functions;
    if (!devices->processes)
        memcpy(all->devices, devices->numbers, devices->count * sizeof *all->devices);
    const gb_group_creation creation = {create, *options, devices->least_weights, devices->backend};
    const gumbel_status status = prepare(all, &creation, devices, error);
    if (status != GUMBEL_OK)
        destroy(&all->base);
    else
        *backend = &all->base;
    return status;
}
