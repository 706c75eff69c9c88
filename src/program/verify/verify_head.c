/* SPDX-License-Identifier: Apache-2.0 */
#include "program/verify/verify.h"

/* The state that the rows of the head's hidden states are copied from or to. */
static const gb_state *hidden_state(const gb_program *program) {
    const uint32_t hidden = gb_hidden_state(program);
    return hidden == UINT32_MAX ? NULL : &program->states[hidden];
}

static bool have_equal_rows(const gb_state *a, const gb_state *b) {
    return a->type.dtype == b->type.dtype && a->type.shape.dims[2] == b->type.shape.dims[2];
}

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

gumbel_status gb_verify_head(const gb_program *program, gumbel_error *error) {
    const gb_program *head = program->head;
    GB_TRY(check_kinds(program, head, error));
    const gb_state *kept = hidden_state(program), *taken = hidden_state(head);
    if (!kept || !taken || !have_equal_rows(kept, taken) || !keeps_where_it_loads(head))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "the program does not keep the hidden states that its draft head takes");
    if (program->metadata.vocab_size != head->metadata.vocab_size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the draft head's vocab_size is %llu, the program's %llu",
                       (unsigned long long)head->metadata.vocab_size,
                       (unsigned long long)program->metadata.vocab_size);
    return GUMBEL_OK;
}
