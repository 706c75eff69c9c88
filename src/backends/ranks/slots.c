/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"

/* Of what cannot fail, or says so by itself. */
static gumbel_status run_silently(gb_group_task t, gb_group_work work) {
    gumbel_error ignored;
    t.work = work;
    return gb_group_run(&t, &ignored);
}

static gumbel_status rank_reset(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                gumbel_error *error) {
    (void)index, (void)error;
    rank->backend->functions->reset_slot(rank->backend, t->slot);
    return GUMBEL_OK;
}

void gb_group_reset_slot(gb_backend *backend, uint32_t slot) {
    run_silently((gb_group_task){.all = gb_group_of(backend), .slot = slot}, rank_reset);
}

static gumbel_status rank_truncate(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                   gumbel_error *error) {
    (void)index;
    return rank->backend->functions->truncate_slot(rank->backend, t->slot, t->position)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_BACKEND, "a slot cannot be truncated");
}

/* Whether it can is the same for all ranks. */
bool gb_group_truncate_slot(gb_backend *backend, uint32_t slot, uint32_t position) {
    return run_silently((gb_group_task){.all = gb_group_of(backend), .slot = slot, .position = position},
                        rank_truncate) == GUMBEL_OK;
}

static gumbel_status rank_copy(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                               gumbel_error *error) {
    (void)index;
    return rank->backend->functions->copy_slot(rank->backend, t->slot, t->to, t->position, error);
}

gumbel_status gb_group_copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                                 gumbel_error *error) {
    return gb_group_run(
        &(gb_group_task){
            .all = gb_group_of(backend), .work = rank_copy, .slot = from, .to = to, .position = position},
        error);
}

static gumbel_status rank_take(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                               gumbel_error *error) {
    (void)index;
    return rank->backend->functions->take_snapshot(rank->backend, t->slot, t->position, error);
}

gumbel_status gb_group_take_snapshot(gb_backend *backend, uint32_t slot, uint32_t position,
                                     gumbel_error *error) {
    return gb_group_run(
        &(gb_group_task){.all = gb_group_of(backend), .work = rank_take, .slot = slot, .position = position},
        error);
}

static gumbel_status rank_restore(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                  gumbel_error *error) {
    (void)index, (void)error;
    rank->backend->functions->restore_snapshot(rank->backend, t->slot, t->position);
    return GUMBEL_OK;
}

void gb_group_restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t position) {
    run_silently((gb_group_task){.all = gb_group_of(backend), .slot = slot, .position = position},
                 rank_restore);
}

static gumbel_status rank_take_rows(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                    gumbel_error *error) {
    gb_rows_of_slot rows = *t->rows;
    rows.backend = gb_group_of(t->rows->backend)->ranks[index].backend;
    return rank->backend->functions->take_rows(rank->backend, t->slot, t->state, &rows, error);
}

/* Each rank has hidden states whole, and the other backend has as many ranks. */
gumbel_status gb_group_take_rows(gb_backend *backend, uint32_t slot, uint32_t state,
                                 const gb_rows_of_slot *rows, gumbel_error *error) {
    return gb_group_run(
        &(gb_group_task){
            .all = gb_group_of(backend), .work = rank_take_rows, .slot = slot, .state = state, .rows = rows},
        error);
}
