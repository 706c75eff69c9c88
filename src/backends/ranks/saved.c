/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/group.h"

#include "base/memory.h"

#include <string.h>

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

gumbel_status gb_rank_save_slot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                gumbel_error *error) {
    return rank->backend->functions->save_slot(rank->backend, t->slot, t->position, t->saved, append_bytes,
                                               &t->bytes[index], error);
}

gumbel_status gb_rank_load_slot(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                gumbel_error *error) {
    t->bytes[index].at = 0;
    return rank->backend->functions->load_slot(rank->backend, t->slot, t->position, t->saved, take_bytes,
                                               &t->bytes[index], error);
}

static gb_split_states split_of(const gb_group_task *t) {
    return (gb_split_states){.program = t->all->program,
                             .shards = t->all->ranks[0].sharded.states,
                             .ranks = t->all->count,
                             .max_context = t->all->max_context,
                             .position = t->position,
                             .saved = t->saved,
                             .of = t->bytes};
}

static void free_bytes_of(const gb_group_task *t) {
    for (uint32_t r = 0; r < t->all->count; r++)
        gb_free(t->bytes[r].data);
}

gumbel_status gb_group_save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                                 gb_save_stream write, void *user, gumbel_error *error) {
    gb_rank_bytes bytes[GB_MOST_RANKS] = {0};
    const gb_group_task t = {.all = gb_group_of(backend),
                             .function = GB_GROUP_SAVE_SLOT,
                             .slot = slot,
                             .position = position,
                             .saved = saved,
                             .bytes = bytes};
    gb_split_states split = split_of(&t);
    gumbel_status status = gb_group_run(&t, error);
    if (status == GUMBEL_OK)
        status = gb_split_states_join(&split, write, user, error);
    free_bytes_of(&t);
    return status;
}

gumbel_status gb_group_load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                                 gb_load_stream read, void *user, gumbel_error *error) {
    gb_rank_bytes bytes[GB_MOST_RANKS] = {0};
    const gb_group_task t = {.all = gb_group_of(backend),
                             .function = GB_GROUP_LOAD_SLOT,
                             .slot = slot,
                             .position = position,
                             .saved = saved,
                             .bytes = bytes};
    gb_split_states split = split_of(&t);
    gumbel_status status = gb_split_states_part(&split, read, user, error);
    if (status == GUMBEL_OK)
        status = gb_group_run(&t, error);
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

gumbel_status gb_rank_copy_to_host(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                   gumbel_error *error) {
    return rank->backend->functions->copy_to_host(rank->backend, t->slot, t->position, t->saved,
                                                  &t->states[index], error);
}

gumbel_status gb_group_copy_to_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                    gb_saved_states saved, gb_host_states **states, gumbel_error *error) {
    *states = NULL;
    host_states *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    made->base.release = release;
    const gb_group_task t = {.all = gb_group_of(backend),
                             .function = GB_GROUP_COPY_TO_HOST,
                             .slot = slot,
                             .position = position,
                             .saved = saved,
                             .states = made->of};
    const gumbel_status status = gb_group_run(&t, error);
    if (status != GUMBEL_OK) {
        release(&made->base);
        return status;
    }
    for (uint32_t r = 0; r < t.all->count; r++)
        made->base.bytes += made->of[r]->bytes;
    *states = &made->base;
    return GUMBEL_OK;
}

gumbel_status gb_rank_copy_from_host(const gb_group_task *t, gb_rank_backend *rank, uint32_t index,
                                     gumbel_error *error) {
    return rank->backend->functions->copy_from_host(rank->backend, t->slot, t->position, t->saved,
                                                    t->states[index], error);
}

gumbel_status gb_group_copy_from_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                      gb_saved_states saved, const gb_host_states *states,
                                      gumbel_error *error) {
    const host_states *all = (const host_states *)states;
    gb_host_states *of[GB_MOST_RANKS];
    memcpy(of, all->of, sizeof of);
    return gb_group_run(&(gb_group_task){.all = gb_group_of(backend),
                                         .function = GB_GROUP_COPY_FROM_HOST,
                                         .slot = slot,
                                         .position = position,
                                         .saved = saved,
                                         .states = of},
                        error);
}
