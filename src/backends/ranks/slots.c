/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"

/* Of what cannot fail, or says so by itself. */
static gumbel_status run_silently(gb_group_task t, gb_group_function function) {
    gumbel_error ignored;
    t.function = function;
    return gb_group_run(&t, &ignored);
}

gumbel_status gb_rank_reset_slot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                 gumbel_error *error) {
    (void)index, (void)error;
    rank->backend->functions->reset_slot(rank->backend, t->slot);
    return GUMBEL_OK;
}

void gb_group_reset_slot(gb_backend *backend, uint32_t slot) {
    run_silently((gb_group_task){.all = gb_group_of(backend), .slot = slot}, GB_GROUP_RESET_SLOT);
}

gumbel_status gb_rank_truncate_slot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                    gumbel_error *error) {
    (void)index;
    return rank->backend->functions->truncate_slot(rank->backend, t->slot, t->position)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_BACKEND, "a slot cannot be truncated");
}

/* Whether it can is the same for all ranks. */
bool gb_group_truncate_slot(gb_backend *backend, uint32_t slot, uint32_t position) {
    return run_silently((gb_group_task){.all = gb_group_of(backend), .slot = slot, .position = position},
                        GB_GROUP_TRUNCATE_SLOT) == GUMBEL_OK;
}

gumbel_status gb_rank_copy_slot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                gumbel_error *error) {
    (void)index;
    return rank->backend->functions->copy_slot(rank->backend, t->slot, t->to, t->position, error);
}

gumbel_status gb_group_copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                                 gumbel_error *error) {
    return gb_group_run(&(gb_group_task){.all = gb_group_of(backend),
                                         .function = GB_GROUP_COPY_SLOT,
                                         .slot = from,
                                         .to = to,
                                         .position = position},
                        error);
}

gumbel_status gb_rank_take_snapshot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                    gumbel_error *error) {
    (void)index;
    return rank->backend->functions->take_snapshot(rank->backend, t->slot, t->position, error);
}

gumbel_status gb_group_take_snapshot(gb_backend *backend, uint32_t slot, uint32_t position,
                                     gumbel_error *error) {
    return gb_group_run(&(gb_group_task){.all = gb_group_of(backend),
                                         .function = GB_GROUP_TAKE_SNAPSHOT,
                                         .slot = slot,
                                         .position = position},
                        error);
}

gumbel_status gb_rank_restore_snapshot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                       gumbel_error *error) {
    (void)index, (void)error;
    rank->backend->functions->restore_snapshot(rank->backend, t->slot, t->position);
    return GUMBEL_OK;
}

void gb_group_restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t position) {
    run_silently((gb_group_task){.all = gb_group_of(backend), .slot = slot, .position = position},
                 GB_GROUP_RESTORE_SNAPSHOT);
}

gumbel_status gb_rank_take_rows(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                gumbel_error *error) {
    gb_rows_of_slot rows = *t->rows;
    rows.backend = gb_group_of(t->rows->backend)->ranks[index].backend;
    const gumbel_status status =
        rank->backend->functions->take_rows(rank->backend, t->slot, t->state, &rows, error);
    return status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY ? status
                                                                : gb_group_leave(t->all, index, error);
}

/* Each rank has hidden states whole, and the other backend has as many ranks. */
gumbel_status gb_group_take_rows(gb_backend *backend, uint32_t slot, uint32_t state,
                                 const gb_rows_of_slot *rows, gumbel_error *error) {
    return gb_group_run(&(gb_group_task){.all = gb_group_of(backend),
                                         .function = GB_GROUP_TAKE_ROWS,
                                         .slot = slot,
                                         .state = state,
                                         .rows = rows},
                        error);
}
