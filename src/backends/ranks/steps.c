/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"

/* Rank 0 fills in the engine's batch, the others a copy. */
gumbel_status gb_rank_step(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
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

/* Threads of a CPU's rank wait for their own team alone, and other processes get masks with the batch, so
 * that these are made before. */
gumbel_status gb_group_step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    gb_group *all = gb_group_of(backend);
    if (all->has_failed)
        return fail_again(all, error);
    gb_late_masks *const masks = batch->late_masks;
    gb_batch given = *batch;
    if (masks && (all->base.threads > 0 || all->processes)) {
        gb_late_masks_finish(masks);
        given.late_masks = NULL;
    }
    const gb_group_task task = {.all = all, .function = GB_GROUP_STEP, .batch = &given, .result = batch};
    const gumbel_status status = gb_group_run(&task, error);
    batch->late_masks = masks;
    all->has_failed = status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY;
    return status;
}
