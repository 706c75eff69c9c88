/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"
#include "backends/ranks/processes/processes.h"
#include "backends/threads/cores.h"
#include "base/memory.h"

/* Its share, one at least. Processes that are told how many have so many each. */
static int threads_of(const gb_group *all, int threads, uint32_t index) {
    const gumbel_process_group *processes = all->processes;
    if (processes && threads > 0)
        return threads;
    const int there = threads > 0 ? threads : (int)gb_available_cores(),
              ranks = (int)(processes ? processes->launch.local_count : all->count);
    const int share = there / ranks + ((int)index < there % ranks && !processes);
    return share > 0 ? share : 1;
}

static void ignore_profile(void *user, const char *op, const char *weight, double seconds) {
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
            options.profile = ignore_profile;
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
