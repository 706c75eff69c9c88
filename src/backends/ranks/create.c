/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"
#include "backends/ranks/processes/processes.h"
#include "backends/threads/cores.h"
#include "base/memory.h"

/* Its share of a process's threads, one at least. */
static int share_of(int threads, uint32_t index, uint32_t count) {
    const int all = threads > 0 ? threads : (int)gb_available_cores(), ranks = (int)count;
    const int share = all / ranks + ((int)index < all % ranks);
    return share > 0 ? share : 1;
}

/* Processes share a host's cores, unless their launcher has given each some of its own. */
static int threads_of(const gb_group *all, int threads, uint32_t index) {
    const gumbel_process_group *processes = all->processes;
    if (!processes)
        return share_of(threads, index, all->count);
    const uint32_t sharing = gb_has_own_cores() ? 1 : processes->launch.local_count;
    return threads > 0 ? threads : share_of(0, processes->launch.local_rank, sharing);
}

void gb_ignore_profile(void *user, const char *op, const char *weight, double seconds) {
    (void)user, (void)op, (void)weight, (void)seconds;
}

/* The ranks' reports are the same but for rank 0's. */
static gb_backend_options rank_options(const gb_group_task *t, uint32_t index) {
    gb_backend_options options = t->creation->options;
    options.rank = (gb_rank){index, t->all->count, t->all->meeting};
    if (!t->all->processes)
        options.device = t->all->devices[index];
    options.threads = threads_of(t->all, options.threads, index);
    if (index > 0) {
        if (options.profile) /* steps that are timed are run in another way, which must be that of all */
            options.profile = gb_ignore_profile;
        options.observe = NULL;
        options.log = NULL;
    }
    return options;
}

static gumbel_status create(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                            gumbel_error *error) {
    const gb_backend_options options = rank_options(t, index);
    rank->next = gb_allocate(gb_most_rows(&options), sizeof *rank->next);
    if (!rank->next)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tokens of a rank");
    return t->creation->create(rank->sharded.program, &options, &rank->backend, error);
}

gumbel_status gb_rank_create(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                             gumbel_error *error) {
    const gumbel_status status = create(t, rank, index, error);
    return status == GUMBEL_OK ? status : gb_group_leave(t->all, index, error);
}

gumbel_status gb_rank_destroy(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                              gumbel_error *error) {
    (void)t, (void)index, (void)error;
    if (rank->backend)
        rank->backend->functions->destroy(rank->backend);
    rank->backend = NULL;
    return GUMBEL_OK;
}
