/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"

#include "base/memory.h"

#include <string.h>

/* By gb_group_function. */
static const gb_rank_function functions[] = {
#define GB_FUNCTION(NAME, name) gb_rank_##name,
    GB_GROUP_FUNCTIONS(GB_FUNCTION)};

void gb_group_run_on(const gb_group_task *t, uint32_t index) {
    gb_rank_backend *rank = &t->all->ranks[index];
    rank->outcome.status = functions[t->function](t, rank, index, &rank->outcome);
}

gumbel_status gb_group_run(const gb_group_task *t, gumbel_error *error) {
    gb_group *all = t->all;
    all->run(t);
    for (uint32_t r = 0; r < all->count; r++)
        if (all->ranks[r].outcome.status != GUMBEL_OK)
            return gb_fail(error, all->ranks[r].outcome.status, "%s", all->ranks[r].outcome.message);
    return GUMBEL_OK;
}

gumbel_status gb_group_leave(gb_group *all, uint32_t index, gumbel_error *error) {
    const gb_rank rank = {index, all->count, all->meeting};
    gumbel_error named;
    if (strncmp(error->message, "rank ", 5) == 0) /* the ranks have agreed on it */
        named = *error;
    else if (all->processes)
        gb_fail(&named, error->status, "rank %u: %.480s", index, error->message);
    else
        gb_fail(&named, error->status, "device %d: %.480s", all->devices[index], error->message);
    gb_meeting_break(all->meeting, &named);
    return gb_rank_broken(&rank, error);
}

gb_group *gb_group_new(const gb_program *program, uint32_t max_context, uint32_t count) {
    gb_group *all = gb_allocate(1, sizeof *all);
    if (!all)
        return NULL;
    all->base.functions = &all->functions;
    all->program = program;
    all->max_context = max_context;
    all->count = all->end = count;
    return all;
}

void gb_group_free(gb_group *all) {
    gb_team_destroy(all->team);
    for (uint32_t r = all->first; r < all->end; r++) {
        gb_sharded_free(&all->ranks[r].sharded);
        gb_free(all->ranks[r].next);
    }
    if (!all->processes)
        gb_meeting_destroy(all->meeting);
    gb_free(all);
}

gumbel_status gb_group_shard(gb_group *all, int64_t least_weights, gumbel_error *error) {
    gb_shard_options options = {.rank = all->first,
                                .ranks = all->count,
                                .least_weights =
                                    least_weights > 0 ? least_weights : GB_LEAST_SHARDED_WEIGHTS};
    for (; options.rank < all->end; options.rank++)
        GB_TRY(gb_program_shard(all->program, &options, &all->ranks[options.rank].sharded, error));
    return GUMBEL_OK;
}
