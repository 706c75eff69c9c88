/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "plan/passes.h"

#include <string.h>

typedef struct lister {
    gb_plan *plan;
    size_t capacity;
    bool fuse;
} lister;

static gumbel_status append_step(lister *l, const gb_step *step, gumbel_error *error) {
    gb_plan *plan = l->plan;
    void *steps = plan->steps;
    if (plan->step_count == UINT32_MAX - 1 ||
        !gb_grow(&steps, &l->capacity, (size_t)plan->step_count + 1, sizeof *step))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the plan");
    plan->steps = steps;
    plan->steps[plan->step_count++] = *step;
    return GUMBEL_OK;
}

/* Whether the batch's rows are all that the step works on. A step that changes a state always runs. */
static bool works_on_rows(const gb_program *program, const gb_step *step) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (program->values[step->operands[i]].kind == GB_VALUE_STATE)
            return false;
    for (uint32_t i = 0; i < step->result_count; i++) {
        const gb_shape *shape = &program->values[step->results[i]].type.shape;
        if (shape->rank == 0 || shape->dims[0] != GB_DIM_B)
            return false;
    }
    return step->result_count > 0;
}

static gumbel_status append_node(lister *l, const gb_node *node, gumbel_error *error) {
    if (node->op == GB_OP_SPLIT_HEADS || node->op == GB_OP_MERGE_HEADS)
        return GUMBEL_OK; /* a view */
    gb_step step = {.kind = GB_STEP_NODE, .node = node};
    step.operand_count = node->operand_count;
    step.result_count = node->result_count;
    memcpy(step.operands, node->operands, sizeof node->operands);
    memcpy(step.results, node->results, sizeof node->results);
    step.needs_rows = works_on_rows(l->plan->program, &step);
    return append_step(l, &step, error);
}

static gumbel_status append_region(lister *l, const gb_region *region, gumbel_error *error);

/* One region of an `if`; its yields become the results of the `if`. */
static gumbel_status append_branch(lister *l, const gb_node *node, int which, gumbel_error *error) {
    const gb_program *program = l->plan->program;
    const gb_region *region = &program->regions[node->regions[which]];
    GB_TRY(append_region(l, region, error));
    for (uint32_t i = 0; i < region->yield_count; i++) {
        gb_step step = {.kind = GB_STEP_MOVE, .operand_count = 1, .result_count = 1};
        step.operands[0] = region->yields[i];
        step.results[0] = node->results[i];
        step.needs_rows = works_on_rows(program, &step);
        GB_TRY(append_step(l, &step, error));
    }
    return GUMBEL_OK;
}

static gumbel_status append_if(lister *l, const gb_node *node, gumbel_error *error) {
    gb_step step;
    if (l->fuse && gb_match_sampler(l->plan, node, &step))
        return append_step(l, &step, error);
    uint32_t branch = l->plan->step_count;
    step = (gb_step){.kind = GB_STEP_BRANCH, .operand_count = 1, .operands = {node->operands[0]}};
    GB_TRY(append_step(l, &step, error));
    GB_TRY(append_branch(l, node, 0, error));
    uint32_t jump = l->plan->step_count;
    GB_TRY(append_step(l, &(gb_step){.kind = GB_STEP_JUMP}, error));
    l->plan->steps[branch].target = l->plan->step_count;
    GB_TRY(append_branch(l, node, 1, error));
    l->plan->steps[jump].target = l->plan->step_count;
    return GUMBEL_OK;
}

/* Calls itself through append_if; the verifier bounds how deep regions nest. */
static gumbel_status append_region(lister *l, const gb_region *region, gumbel_error *error) {
    for (uint32_t i = 0; i < region->node_count; i++) {
        const gb_node *node = &l->plan->program->nodes[region->first_node + i];
        if (node->op == GB_OP_IF)
            GB_TRY(append_if(l, node, error));
        else
            GB_TRY(append_node(l, node, error));
    }
    return GUMBEL_OK;
}

gumbel_status gb_plan_list_steps(gb_plan *plan, bool fuse, gumbel_error *error) {
    lister l = {.plan = plan, .fuse = fuse};
    return append_region(&l, &plan->program->regions[0], error);
}
