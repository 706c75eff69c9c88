/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/ranks.h"

#include "backends/ranks/split_states.h"
#include "backends/threads/cores.h"
#include "backends/threads/team.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

typedef struct rank_backend {
    gb_backend *backend;
    gb_sharded sharded;
    gumbel_error outcome; /* of what was done last */
    int32_t *next;        /* of a rank other than 0, whose tokens nobody reads */
} rank_backend;

typedef struct ranks_backend {
    gb_backend base;
    gb_backend_functions functions; /* those that the ranks have */
    const gb_program *program;
    uint32_t count, max_context;
    int devices[GB_MOST_RANKS];
    gb_meeting *meeting;
    gb_team *team; /* a thread a rank */
    rank_backend ranks[GB_MOST_RANKS];
    bool has_failed;
} ranks_backend;

static ranks_backend *ranks_of(gb_backend *backend) {
    return (ranks_backend *)backend;
}

/* ---- All together -------------------------------------------------------------------------------------- */

/* What every rank does: a function of backend.h, with these arguments. */
typedef struct task task;
typedef gumbel_status (*rank_work)(const task *task, rank_backend *rank, uint32_t index, gumbel_error *error);

struct task {
    ranks_backend *all;
    rank_work work;
    gb_batch *batch;
    uint32_t slot, to, position;
    gb_saved_states saved;
    gb_host_states **states; /* [count] */
    gb_rank_bytes *bytes;    /* [count] */
};

static void do_work(void *user, unsigned index) {
    const task *t = user;
    rank_backend *rank = &t->all->ranks[index];
    rank->outcome.status = t->work(t, rank, index, &rank->outcome);
}

/* The first error. */
static gumbel_status run(const task *t, gumbel_error *error) {
    ranks_backend *all = t->all;
    gb_team_run(all->team, do_work, (void *)(uintptr_t)t);
    for (uint32_t r = 0; r < all->count; r++)
        if (all->ranks[r].outcome.status != GUMBEL_OK)
            return gb_fail(error, all->ranks[r].outcome.status, "%s", all->ranks[r].outcome.message);
    return GUMBEL_OK;
}

static gumbel_status run_silently(task t, rank_work work) {
    gumbel_error ignored;
    t.work = work;
    return run(&t, &ignored);
}

/* A rank that fails is awaited by the others where they meet: they end with its error. */
static gumbel_status leave(ranks_backend *all, uint32_t index, gumbel_error *error) {
    const gb_rank rank = {index, all->count, all->meeting};
    gumbel_error named;
    gb_fail(&named, error->status, "device %d: %.480s", all->devices[index], error->message);
    gb_meeting_break(all->meeting, &named);
    return gb_rank_broken(&rank, error);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* Rank 0 fills in the engine's batch, the others a copy. */
static gumbel_status rank_step(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    gb_batch copy = *t->batch;
    copy.next = index > 0 ? rank->next : copy.next;
    const gumbel_status status = rank->backend->functions->step(rank->backend, &copy, error);
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY)
        return leave(t->all, index, error);
    if (status == GUMBEL_OK && index == 0)
        *t->batch = copy;
    return status;
}

/* Threads of a CPU's rank wait for their own team alone, so that its masks are made before. */
static gumbel_status step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    ranks_backend *all = ranks_of(backend);
    if (all->has_failed)
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "a rank failed in an earlier step");
    gb_late_masks *masks = batch->late_masks;
    if (masks && all->base.threads > 0) {
        gb_late_masks_finish(masks);
        batch->late_masks = NULL;
    }
    const gumbel_status status = run(&(task){.all = all, .work = rank_step, .batch = batch}, error);
    batch->late_masks = masks;
    all->has_failed = status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY;
    return status;
}

/* ---- Slots --------------------------------------------------------------------------------------------- */

static gumbel_status rank_reset(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    (void)index, (void)error;
    rank->backend->functions->reset_slot(rank->backend, t->slot);
    return GUMBEL_OK;
}

static void reset_slot(gb_backend *backend, uint32_t slot) {
    run_silently((task){.all = ranks_of(backend), .slot = slot}, rank_reset);
}

static gumbel_status rank_truncate(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    (void)index;
    return rank->backend->functions->truncate_slot(rank->backend, t->slot, t->position)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_BACKEND, "a slot cannot be truncated");
}

/* Whether it can is the same for all ranks. */
static bool truncate_slot(gb_backend *backend, uint32_t slot, uint32_t position) {
    return run_silently((task){.all = ranks_of(backend), .slot = slot, .position = position},
                        rank_truncate) == GUMBEL_OK;
}

static gumbel_status rank_copy(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    (void)index;
    return rank->backend->functions->copy_slot(rank->backend, t->slot, t->to, t->position, error);
}

static gumbel_status copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                               gumbel_error *error) {
    return run(
        &(task){.all = ranks_of(backend), .work = rank_copy, .slot = from, .to = to, .position = position},
        error);
}

static gumbel_status rank_take(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    (void)index;
    return rank->backend->functions->take_snapshot(rank->backend, t->slot, t->position, error);
}

static gumbel_status take_snapshot(gb_backend *backend, uint32_t slot, uint32_t position,
                                   gumbel_error *error) {
    return run(&(task){.all = ranks_of(backend), .work = rank_take, .slot = slot, .position = position},
               error);
}

static gumbel_status rank_restore(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    (void)index, (void)error;
    rank->backend->functions->restore_snapshot(rank->backend, t->slot, t->position);
    return GUMBEL_OK;
}

static void restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t position) {
    run_silently((task){.all = ranks_of(backend), .slot = slot, .position = position}, rank_restore);
}

/* ---- Saved states -------------------------------------------------------------------------------------- */

static gumbel_status append_bytes(void *user, const void *data, uint64_t size, gumbel_error *error) {
    return gb_rank_bytes_append(user, data, size)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the states of a rank");
}

static gumbel_status take_bytes(void *user, void *data, uint64_t size, gumbel_error *error) {
    gb_rank_bytes *bytes = user;
    if (size > bytes->size - bytes->at)
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "a sequence's saved states are too short");
    memcpy(data, bytes->data + bytes->at, (size_t)size);
    bytes->at += (size_t)size;
    return GUMBEL_OK;
}

static gumbel_status rank_save(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    return rank->backend->functions->save_slot(rank->backend, t->slot, t->position, t->saved, append_bytes,
                                               &t->bytes[index], error);
}

static gumbel_status rank_load(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    t->bytes[index].at = 0;
    return rank->backend->functions->load_slot(rank->backend, t->slot, t->position, t->saved, take_bytes,
                                               &t->bytes[index], error);
}

static gb_split_states split_of(const task *t) {
    return (gb_split_states){.program = t->all->program,
                             .shards = t->all->ranks[0].sharded.states,
                             .ranks = t->all->count,
                             .max_context = t->all->max_context,
                             .position = t->position,
                             .saved = t->saved,
                             .of = t->bytes};
}

static void free_bytes_of(const task *t) {
    for (uint32_t r = 0; r < t->all->count; r++)
        gb_free(t->bytes[r].data);
}

static gumbel_status save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_save_stream write, void *user, gumbel_error *error) {
    gb_rank_bytes bytes[GB_MOST_RANKS] = {0};
    const task t = {.all = ranks_of(backend),
                    .work = rank_save,
                    .slot = slot,
                    .position = position,
                    .saved = saved,
                    .bytes = bytes};
    gb_split_states split = split_of(&t);
    gumbel_status status = run(&t, error);
    if (status == GUMBEL_OK)
        status = gb_split_states_join(&split, write, user, error);
    free_bytes_of(&t);
    return status;
}

static gumbel_status load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_load_stream read, void *user, gumbel_error *error) {
    gb_rank_bytes bytes[GB_MOST_RANKS] = {0};
    const task t = {.all = ranks_of(backend),
                    .work = rank_load,
                    .slot = slot,
                    .position = position,
                    .saved = saved,
                    .bytes = bytes};
    gb_split_states split = split_of(&t);
    gumbel_status status = gb_split_states_part(&split, read, user, error);
    if (status == GUMBEL_OK)
        status = run(&t, error);
    free_bytes_of(&t);
    return status;
}

/* ---- States in host memory ----------------------------------------------------------------------------- */

typedef struct host_states {
    gb_host_states base;
    gb_host_states *of[GB_MOST_RANKS];
} host_states;

static void release(gb_host_states *states) {
    host_states *all = (host_states *)states;
    for (uint32_t r = 0; r < GB_MOST_RANKS; r++)
        gb_host_states_release(all->of[r]);
    gb_free(all);
}

static gumbel_status rank_copy_out(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    return rank->backend->functions->copy_to_host(rank->backend, t->slot, t->position, t->saved,
                                                  &t->states[index], error);
}

static gumbel_status copy_to_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                  gb_saved_states saved, gb_host_states **states, gumbel_error *error) {
    *states = NULL;
    host_states *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    made->base.release = release;
    const task t = {.all = ranks_of(backend),
                    .work = rank_copy_out,
                    .slot = slot,
                    .position = position,
                    .saved = saved,
                    .states = made->of};
    const gumbel_status status = run(&t, error);
    if (status != GUMBEL_OK) {
        release(&made->base);
        return status;
    }
    for (uint32_t r = 0; r < t.all->count; r++)
        made->base.bytes += made->of[r]->bytes;
    *states = &made->base;
    return GUMBEL_OK;
}

static gumbel_status rank_copy_in(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    return rank->backend->functions->copy_from_host(rank->backend, t->slot, t->position, t->saved,
                                                    t->states[index], error);
}

static gumbel_status copy_from_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                    gb_saved_states saved, const gb_host_states *states,
                                    gumbel_error *error) {
    const host_states *all = (const host_states *)states;
    gb_host_states *of[GB_MOST_RANKS];
    memcpy(of, all->of, sizeof of);
    return run(&(task){.all = ranks_of(backend),
                       .work = rank_copy_in,
                       .slot = slot,
                       .position = position,
                       .saved = saved,
                       .states = of},
               error);
}

/* ---- The rest ------------------------------------------------------------------------------------------ */

static gumbel_status measure_limits(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error) {
    gb_backend *first = ranks_of(backend)->ranks[0].backend;
    return first->functions->measure_limits(first, limits, error);
}

/* The ranks' states grow alike, so that the fullest device counts for all. */
static uint64_t free_bytes(gb_backend *backend) {
    ranks_backend *all = ranks_of(backend);
    uint64_t least = UINT64_MAX;
    for (uint32_t r = 0; r < all->count; r++) {
        const uint64_t bytes = all->ranks[r].backend->functions->free_bytes(all->ranks[r].backend);
        least = bytes < least ? bytes : least;
    }
    return least * all->count;
}

static gumbel_status rank_destroy(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    (void)t, (void)index, (void)error;
    if (rank->backend)
        rank->backend->functions->destroy(rank->backend);
    return GUMBEL_OK;
}

static void destroy(gb_backend *backend) {
    ranks_backend *all = ranks_of(backend);
    if (all->team)
        run_silently((task){.all = all}, rank_destroy);
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
    task base; /* first, so that work finds it */
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

/* The ranks' reports are the same but for rank 0's. */
static gb_backend_options rank_options(const creation *c, uint32_t index) {
    gb_backend_options options = c->options;
    options.rank = (gb_rank){index, c->base.all->count, c->base.all->meeting};
    options.device = c->base.all->devices[index];
    options.threads = threads_of(c->options.threads, index, c->base.all->count);
    if (index > 0) {
        options.profile = NULL;
        options.observe = NULL;
        options.log = NULL;
    }
    return options;
}

static gumbel_status create_rank(const creation *c, rank_backend *rank, uint32_t index, gumbel_error *error) {
    const gb_backend_options options = rank_options(c, index);
    rank->next = gb_allocate(gb_most_rows(&options), sizeof *rank->next);
    if (!rank->next)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tokens of a rank");
    return c->create(rank->sharded.program, &options, &rank->backend, error);
}

static gumbel_status rank_create(const task *t, rank_backend *rank, uint32_t index, gumbel_error *error) {
    const gumbel_status status = create_rank((const creation *)t, rank, index, error);
    return status == GUMBEL_OK ? status : leave(t->all, index, error);
}

static const gb_backend_functions all_functions = {
    .destroy = destroy,
    .step = step,
    .reset_slot = reset_slot,
    .truncate_slot = truncate_slot,
    .copy_slot = copy_slot,
    .take_snapshot = take_snapshot,
    .restore_snapshot = restore_snapshot,
    .save_slot = save_slot,
    .load_slot = load_slot,
    .copy_to_host = copy_to_host,
    .copy_from_host = copy_from_host,
    .measure_limits = measure_limits,
    .free_bytes = free_bytes,
};

/* What the ranks have, the whole has. */
static void take_facts(ranks_backend *all) {
    const gb_backend *first = all->ranks[0].backend;
    const gb_backend_functions *own = first->functions;
    all->functions.truncate_slot = own->truncate_slot ? truncate_slot : NULL;
    all->functions.copy_to_host = own->copy_to_host ? copy_to_host : NULL;
    all->functions.copy_from_host = own->copy_from_host ? copy_from_host : NULL;
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

static gumbel_status shard(ranks_backend *all, const gb_devices *devices, gumbel_error *error) {
    gb_shard_options options = {.ranks = all->count, .least_weights = devices->least_weights};
    if (options.least_weights == 0)
        options.least_weights = GB_LEAST_SHARDED_WEIGHTS;
    for (; options.rank < all->count; options.rank++)
        GB_TRY(gb_program_shard(all->program, &options, &all->ranks[options.rank].sharded, error));
    return GUMBEL_OK;
}

static gumbel_status prepare(ranks_backend *all, creation *c, gumbel_error *error) {
    GB_TRY(shard(all, c->devices, error));
    GB_TRY(gb_meeting_create(all->count, &all->meeting, error));
    GB_TRY(gb_team_create(all->count, &all->team, error));
    GB_TRY(run(&c->base, error));
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
    ranks_backend *all = gb_allocate(1, sizeof *all);
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
