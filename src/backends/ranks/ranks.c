/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/ranks.h"

#include "backends/ranks/group.h"
#include "backends/threads/cores.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* Rank 0 fills in the engine's batch, the others a copy. */
static gumbel_status rank_step(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                               gumbel_error *error) {
    gb_batch copy = *t->batch;
    copy.next = index > 0 ? rank->next : copy.next;
    const gumbel_status status = rank->backend->functions->step(rank->backend, &copy, error);
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY)
        return gb_group_leave(t->all, index, error);
    if (status == GUMBEL_OK && index == 0)
        *t->result = copy;
    return status;
}

/* With the reason for which a rank has left the others, in an earlier step. */
static gumbel_status fail_again(const gb_group *all, gumbel_error *error) {
    gumbel_error why;
    gb_rank_broken(&(gb_rank){0, all->count, all->meeting}, &why);
    return gb_fail(error, GUMBEL_ERROR_BACKEND, "%s", why.message);
}

/* Threads of a CPU's rank wait for their own team alone, so that its masks are made before. */
static gumbel_status step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    gb_group *all = gb_group_of(backend);
    if (all->has_failed)
        return fail_again(all, error);
    gb_late_masks *const masks = batch->late_masks;
    gb_batch given = *batch;
    if (masks && all->base.threads > 0) {
        gb_late_masks_finish(masks);
        given.late_masks = NULL;
    }
    const gb_group_task task = {.all = all, .work = rank_step, .batch = &given, .result = batch};
    const gumbel_status status = gb_group_run(&task, error);
    batch->late_masks = masks;
    all->has_failed = status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY;
    return status;
}

/* ---- The rest ------------------------------------------------------------------------------------------ */

static gumbel_status measure_limits(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error) {
    gb_backend *first = gb_group_of(backend)->ranks[0].backend;
    return first->functions->measure_limits(first, limits, error);
}

/* The ranks' states grow alike, so that the fullest device counts for all. */
static uint64_t free_bytes(gb_backend *backend) {
    gb_group *all = gb_group_of(backend);
    uint64_t least = UINT64_MAX;
    for (uint32_t r = 0; r < all->count; r++) {
        const uint64_t bytes = all->ranks[r].backend->functions->free_bytes(all->ranks[r].backend);
        least = bytes < least ? bytes : least;
    }
    return least * all->count;
}

static gumbel_status rank_destroy(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                  gumbel_error *error) {
    (void)t, (void)index, (void)error;
    if (rank->backend)
        rank->backend->functions->destroy(rank->backend);
    return GUMBEL_OK;
}

static void destroy(gb_backend *backend) {
    gumbel_error ignored;
    gb_group *all = gb_group_of(backend);
    if (all->team)
        gb_group_run(&(gb_group_task){.all = all, .work = rank_destroy}, &ignored);
    gb_team_destroy(all->team);
    gb_meeting_destroy(all->meeting);
    for (uint32_t r = 0; r < all->count; r++) {
        gb_sharded_free(&all->ranks[r].sharded);
        gb_free(all->ranks[r].next);
    }
    gb_free(all);
}

/* ---- Making them --------------------------------------------------------------------------------------- */

typedef struct creation {
    gb_group_task base; /* first, so that work finds it */
    gb_backend_create create;
    gb_backend_options options;
    const gb_devices *devices;
} creation;

/* Its share, one at least. */
static int threads_of(int threads, uint32_t index, uint32_t count) {
    const int all = threads > 0 ? threads : (int)gb_available_cores(), ranks = (int)count;
    const int share = all / ranks + ((int)index < all % ranks);
    return share > 0 ? share : 1;
}

static void ignore_profile(void *user, const char *op, const char *weight, double seconds) {
    (void)user, (void)op, (void)weight, (void)seconds;
}

/* The ranks' reports are the same but for rank 0's. */
static gb_backend_options rank_options(const creation *c, uint32_t index) {
    gb_backend_options options = c->options;
    options.rank = (gb_rank){index, c->base.all->count, c->base.all->meeting};
    options.device = c->base.all->devices[index];
    options.threads = threads_of(c->options.threads, index, c->base.all->count);
    if (index > 0) {
        if (options.profile) /* steps that are timed are run in another way, which must be that of all */
            options.profile = ignore_profile;
        options.observe = NULL;
        options.log = NULL;
    }
    return options;
}

static gumbel_status create_rank(const creation *c, gb_rank_backend *rank, uint32_t index,
                                 gumbel_error *error) {
    const gb_backend_options options = rank_options(c, index);
    rank->next = gb_allocate(gb_most_rows(&options), sizeof *rank->next);
    if (!rank->next)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tokens of a rank");
    return c->create(rank->sharded.program, &options, &rank->backend, error);
}

static gumbel_status rank_create(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                 gumbel_error *error) {
    const gumbel_status status = create_rank((const creation *)t, rank, index, error);
    return status == GUMBEL_OK ? status : gb_group_leave(t->all, index, error);
}

static const gb_backend_functions all_functions = {
    .destroy = destroy,
    .step = step,
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

/* What the ranks have, the whole has. */
static void take_facts(gb_group *all) {
    const gb_backend *first = all->ranks[0].backend;
    const gb_backend_functions *own = first->functions;
    all->functions.truncate_slot = own->truncate_slot ? gb_group_truncate_slot : NULL;
    all->functions.copy_to_host = own->copy_to_host ? gb_group_copy_to_host : NULL;
    all->functions.copy_from_host = own->copy_from_host ? gb_group_copy_from_host : NULL;
    all->functions.take_rows = own->take_rows ? gb_group_take_rows : NULL;
    all->functions.measure_limits = own->measure_limits ? measure_limits : NULL;
    all->functions.free_bytes = own->free_bytes ? free_bytes : NULL;
    for (uint32_t r = 0; r < all->count; r++)
        all->base.threads += all->ranks[r].backend->threads;
    all->base.most_following = first->most_following;
    all->base.prefill_chunk = first->prefill_chunk;
    all->base.reuse = first->reuse;
    all->base.grain = first->grain;
    snprintf(all->base.description, sizeof all->base.description, "%u x %.80s", all->count,
             first->description);
}

static gumbel_status shard(gb_group *all, const gb_devices *devices, gumbel_error *error) {
    gb_shard_options options = {.ranks = all->count, .least_weights = devices->least_weights};
    if (options.least_weights == 0)
        options.least_weights = GB_LEAST_SHARDED_WEIGHTS;
    for (; options.rank < all->count; options.rank++)
        GB_TRY(gb_program_shard(all->program, &options, &all->ranks[options.rank].sharded, error));
    return GUMBEL_OK;
}

static gumbel_status prepare(gb_group *all, creation *c, gumbel_error *error) {
    GB_TRY(shard(all, c->devices, error));
    GB_TRY(gb_meeting_create(all->count, &all->meeting, error));
    GB_TRY(gb_team_create(all->count, &all->team, error));
    GB_TRY(gb_group_run(&c->base, error));
    take_facts(all);
    return GUMBEL_OK;
}

gumbel_status gb_ranks_backend_create(gb_backend_create create, const gb_program *program,
                                      const gb_backend_options *options, const gb_devices *devices,
                                      gb_backend **backend, gumbel_error *error) {
    *backend = NULL;
    if (devices->count > GB_MOST_RANKS)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%u devices: expected at most %d", devices->count,
                       (int)GB_MOST_RANKS);
    gb_group *all = gb_allocate(1, sizeof *all);
    if (!all)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a backend");
    all->functions = all_functions;
    all->base.functions = &all->functions;
    all->program = program;
    all->count = devices->count;
    all->max_context = options->max_context;
    memcpy(all->devices, devices->numbers, devices->count * sizeof *all->devices);
    creation c = {{.all = all, .work = rank_create}, create, *options, devices};
    const gumbel_status status = prepare(all, &c, error);
    if (status != GUMBEL_OK)
        destroy(&all->base);
    else
        *backend = &all->base;
    return status;
}
