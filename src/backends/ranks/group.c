/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"

#include <string.h>

static void do_work(void *user, unsigned index) {
    const gb_group_task *t = user;
    gb_rank_backend *rank = &t->all->ranks[index];
    rank->outcome.status = t->work(t, rank, index, &rank->outcome);
}

gumbel_status gb_group_run(const gb_group_task *t, gumbel_error *error) {
    gb_group *all = t->all;
    gb_team_run(all->team, do_work, (void *)(uintptr_t)t);
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
    else
        gb_fail(&named, error->status, "device %d: %.480s", all->devices[index], error->message);
    gb_meeting_break(all->meeting, &named);
    return gb_rank_broken(&rank, error);
}
