/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/head.h"

#include "base/memory.h"
#include "program/draft_head.h"

#include <string.h>

/* A program has its head's id, which is made from its own. */
static bool is_of_another(const gb_program *target, const gb_program *head) {
    return target->head && memcmp(target->head->id, head->id, sizeof head->id) != 0;
}

gumbel_status gb_check_draft_head(const gb_program *target, const gb_program *head, gumbel_error *error) {
    for (uint32_t i = 0; i < head->state_count; i++)
        if ((gb_attends_to_program(head) || i == gb_hidden_state(head)) &&
            gb_state_of_program(target, head, i) == UINT32_MAX)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "draft_engine: its program is a draft head, and this program keeps no %s for it; "
                           "export both together, and give both the same caches",
                           i == gb_hidden_state(head) ? "hidden states" : head->states[i].name);
    if (is_of_another(target, head))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_engine: its program is the draft head of another program");
    return GUMBEL_OK;
}

gumbel_status gb_check_draft_head_place(const gumbel_engine *engine, const gumbel_engine *head,
                                        gumbel_error *error) {
    if (engine->backend_name == head->backend_name && engine->device_count == head->device_count &&
        engine->process_group == head->process_group &&
        memcmp(engine->devices, head->devices, sizeof engine->devices) == 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "draft_engine: a draft head runs on the backend and the devices of its program");
}

gb_taken_states *gb_find_taken_states(const gb_program *target, const gb_program *head) {
    gb_taken_states *taken = gb_allocate(1, sizeof *taken + head->state_count * sizeof *taken->list);
    for (uint32_t i = 0; taken && i < head->state_count; i++) {
        const uint32_t of_target = gb_state_of_program(target, head, i);
        if (of_target != UINT32_MAX)
            taken->list[taken->count++] = (struct gb_taken_state){i, of_target};
    }
    return taken;
}

gumbel_status gb_take_rows(const gumbel_session *target, const gumbel_session *draft, uint32_t first,
                           uint32_t end, gumbel_error *error) {
    const gb_taken_states *taken = target->engine->taken;
    gb_backend *backend = draft->engine->backend;
    const uint32_t known = gb_session_run_position(target);
    gb_rows_of_slot rows = {.backend = target->engine->backend,
                            .slot = target->slot,
                            .first = first,
                            .end = end < known ? end : known};
    for (uint32_t i = 0; taken && rows.first < rows.end && i < taken->count; i++) {
        rows.state = taken->list[i].of_target;
        GB_TRY(backend->functions->take_rows(backend, draft->slot, taken->list[i].own, &rows, error));
    }
    return GUMBEL_OK;
}
