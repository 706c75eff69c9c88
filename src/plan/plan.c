/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include "base/memory.h"
#include "plan/passes.h"

void gb_plan_find_views(gb_plan *plan) {
    const gb_program *program = plan->program;
    for (gb_ref i = 0; i < program->value_count; i++) { /* operands are numbered before results */
        const gb_node *node = gb_producer(program, i);
        bool is_view = node && (node->op == GB_OP_SPLIT_HEADS || node->op == GB_OP_MERGE_HEADS);
        plan->places[i].storage = is_view ? plan->places[node->operands[0]].storage : i;
    }
}

static gumbel_status run_passes(gb_plan *plan, const gb_plan_options *options, gumbel_error *error) {
    gb_plan_find_views(plan);
    GB_TRY(gb_plan_list_steps(plan, options->fuse, error));
    GB_TRY(gb_plan_remove_dead_steps(plan, error));
    if (options->fuse && options->supports)
        GB_TRY(gb_plan_fuse(plan, options, error));
    if (options->finish_steps)
        GB_TRY(options->finish_steps(plan, options->user, error));
    return gb_plan_place_values(plan, options, error);
}

gumbel_status gb_plan_create(const gb_program *program, const gb_plan_options *options, gb_plan **plan,
                             gumbel_error *error) {
    *plan = NULL;
    if (options->step_tokens == 0 || options->rows == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "plan for %u tokens and %u rows: expected at least 1",
                       options->step_tokens, options->rows);
    gb_plan *created = gb_allocate(1, sizeof *created);
    if (created)
        created->places = gb_allocate(program->value_count, sizeof *created->places);
    if (!created || !created->places) {
        gb_plan_destroy(created);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
    }
    created->program = program;
    gumbel_status status = run_passes(created, options, error);
    if (status != GUMBEL_OK) {
        gb_plan_destroy(created);
        return status;
    }
    *plan = created;
    return GUMBEL_OK;
}

void gb_plan_destroy(gb_plan *plan) {
    if (!plan)
        return;
    gb_free(plan->buffers);
    gb_free(plan->steps);
    gb_free(plan->fused);
    gb_free(plan->places);
    gb_free(plan);
}

const char *gb_step_name(const gb_step *step) {
    switch (step->kind) {
    case GB_STEP_NODE:
        return gb_op_find(step->node->op)->name;
    case GB_STEP_SAMPLE:
        return "sample";
    case GB_STEP_BRANCH:
        return "branch";
    case GB_STEP_JUMP:
        return "jump";
    case GB_STEP_FUSED:
        return gb_fused_name(step->fused->kind);
    default:
        return "move";
    }
}

bool gb_step_produces(const gb_step *step, gb_ref value) {
    for (uint32_t i = 0; i < step->result_count; i++)
        if (step->results[i] == value)
            return true;
    return false;
}

const gb_constant *gb_step_weight(const gb_program *program, const gb_step *step) {
    for (uint32_t i = 0; i < step->operand_count; i++) {
        gb_ref ref = step->operands[i];
        if (ref == GB_NO_VALUE)
            continue;
        const gb_value *value = &program->values[ref];
        if (value->kind == GB_VALUE_CONSTANT && value->type.shape.rank > 1)
            return &program->constants[value->index];
    }
    return NULL;
}

gumbel_status gb_plan_scratch_bytes(const gb_program *program, const gb_plan_options *options,
                                    uint64_t *bytes, gumbel_error *error) {
    gb_plan *plan;
    GB_TRY(gb_plan_create(program, options, &plan, error));
    *bytes = plan->arena_bytes;
    gb_plan_destroy(plan);
    return GUMBEL_OK;
}
