/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/processes/message.h"

#include <stddef.h>

_Static_assert(sizeof(gb_creation_message) == offsetof(gb_creation_message, unused) + 5, "it has padding");
_Static_assert(sizeof(gb_reply_message) == sizeof(gumbel_error) + 2 * sizeof(uint64_t), "it has padding");

gb_task_message gb_task_message_of(const gb_group_task *t) {
    gb_task_message message = {.function = t->function,
                               .group = t->all->number,
                               .slot = t->slot,
                               .to = t->to,
                               .position = t->position,
                               .state = t->state,
                               .saved = t->saved};
    if (t->rows) {
        message.other_group = gb_group_of(t->rows->backend)->number;
        message.other_slot = t->rows->slot;
        message.other_state = t->rows->state;
        message.first = t->rows->first;
        message.end = t->rows->end;
    }
    return message;
}

uint64_t gb_all_state_bytes(const gb_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->state_count; i++)
        bytes += gb_state_bytes(&program->states[i]);
    return bytes;
}
