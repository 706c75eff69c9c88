/* SPDX-License-Identifier: Apache-2.0 */
#include "program/draft_head.h"
#include "program/verify/verify.h"

/* Its own hidden states go where the program's come from. */
static bool keeps_where_it_loads(const gb_program *head) {
    for (uint32_t i = 0; i < head->node_count; i++) {
        const gb_node *node = &head->nodes[i];
        if (node->op == GB_OP_LOAD_HIDDEN && head->values[node->operands[2]].index != gb_hidden_state(head))
            return false;
    }
    return true;
}

static gumbel_status check_kinds(const gb_program *program, const gb_program *head, gumbel_error *error) {
    if (head->head)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the draft head has a draft head");
    if (!gb_is_draft_head(head))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the draft head has no load_hidden");
    if (gb_is_draft_head(program))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "a program with load_hidden has a draft head");
    return GUMBEL_OK;
}

static bool has_op(const gb_program *program, gb_op op) {
    return gb_program_op_count(program, op) > 0;
}

/* A head that attends to the program's keys and values has nothing to run of a prompt: all that it has of
 * earlier tokens is the program's, and stands at the same positions. */
static gumbel_status check_states(const gb_program *program, const gb_program *head, gumbel_error *error) {
    const bool attends = gb_attends_to_program(head);
    for (uint32_t i = 0; i < head->state_count && attends; i++)
        if (gb_state_of_program(program, head, i) == UINT32_MAX)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "the program has not the state %s of its draft head",
                           head->states[i].name);
    if (attends && (has_op(head, GB_OP_ATTENTION) || gb_has_recurrent_state(head)))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "the draft head attends to the program's keys and has states of its own");
    if (attends == (gb_draft_head_offset(head) == 0))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "load_hidden: before is %u in a draft head that %s to the program's keys",
                   1 - gb_draft_head_offset(head), attends ? "attends" : "does not attend");
}

gumbel_status gb_verify_head(const gb_program *program, gumbel_error *error) {
    const gb_program *head = program->head;
    GB_TRY(check_kinds(program, head, error));
    const uint32_t hidden = gb_hidden_state(head);
    if (hidden == UINT32_MAX || gb_state_of_program(program, head, hidden) == UINT32_MAX ||
        !keeps_where_it_loads(head))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "the program does not keep the hidden states that its draft head takes");
    GB_TRY(check_states(program, head, error));
    if (program->metadata.vocab_size != head->metadata.vocab_size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the draft head's vocab_size is %llu, the program's %llu",
                       (unsigned long long)head->metadata.vocab_size,
                       (unsigned long long)program->metadata.vocab_size);
    return GUMBEL_OK;
}
