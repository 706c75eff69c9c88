/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/head.h"

#include <string.h>

static const gb_type *hidden_type(const gb_program *program) {
    const uint32_t state = gb_hidden_state(program);
    return state == UINT32_MAX ? NULL : &program->states[state].type;
}

/* A program has its head's id, which is made from its own. */
static bool is_of_another(const gb_program *target, const gb_program *head) {
    return target->head && memcmp(target->head->id, head->id, sizeof head->id) != 0;
}

gumbel_status gb_check_draft_head(const gb_program *target, const gb_program *head, gumbel_error *error) {
    const gb_type *own = hidden_type(target), *wanted = hidden_type(head);
    if (!own || !wanted || own->dtype != wanted->dtype || own->shape.dims[2] != wanted->shape.dims[2])
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "draft_engine: its program is a draft head, and this program keeps no hidden states for "
            "it; export both together");
    if (is_of_another(target, head))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_engine: its program is the draft head of another program");
    return GUMBEL_OK;
}

gumbel_status gb_check_draft_head_place(const gumbel_engine *engine, const gumbel_engine *head,
                                        gumbel_error *error) {
    if (engine->backend_name == head->backend_name && engine->device_count == head->device_count &&
        memcmp(engine->devices, head->devices, sizeof engine->devices) == 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "draft_engine: a draft head runs on the backend and the devices of its program");
}

gumbel_status gb_take_hidden(const gumbel_session *target, gumbel_session *draft, size_t count,
                             gumbel_error *error) {
    const gumbel_engine *engine = target->engine, *head = draft->engine;
    const uint32_t first = gb_session_run_position(draft), end = first + (uint32_t)count,
                   known = gb_session_run_position(target);
    const gb_rows_of_slot rows = {.backend = engine->backend,
                                  .slot = target->slot,
                                  .state = engine->hidden_state,
                                  .first = first,
                                  .end = end < known ? end : known};
    if (!head->is_draft_head || rows.first >= rows.end)
        return GUMBEL_OK;
    return head->backend->functions->take_rows(head->backend, draft->slot, head->hidden_state, &rows, error);
}
