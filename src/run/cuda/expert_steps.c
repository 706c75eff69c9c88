/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/expert_steps.h"

enum { OTHER = -1 }; /* an operand that none of the steps makes */

typedef struct pattern {
    gb_op op;
    int operands[3]; /* which step's result 0 they are */
} pattern;

static const pattern patterns[GB_EXPERT_STEPS] = {
    [GB_EXPERT_ROUTER] = {GB_OP_LINEAR, {OTHER, OTHER}},
    [GB_EXPERT_SHARED_GATE] = {GB_OP_LINEAR, {OTHER, OTHER}},
    [GB_EXPERT_SHARED_UP] = {GB_OP_LINEAR, {OTHER, OTHER}},
    [GB_EXPERT_SHARED_LOGIT] = {GB_OP_LINEAR, {OTHER, OTHER}},
    [GB_EXPERT_ROUTE] = {GB_OP_ROUTE_TOP_K, {GB_EXPERT_ROUTER}},
    [GB_EXPERT_GATE_UP] = {GB_OP_EXPERT_LINEAR, {OTHER, OTHER, GB_EXPERT_ROUTE}},
    [GB_EXPERT_GATE] = {GB_OP_SLICE, {GB_EXPERT_GATE_UP}},
    [GB_EXPERT_UP] = {GB_OP_SLICE, {GB_EXPERT_GATE_UP}},
    [GB_EXPERT_SILU] = {GB_OP_SILU, {GB_EXPERT_GATE}},
    [GB_EXPERT_INNER] = {GB_OP_MULTIPLY, {GB_EXPERT_SILU, GB_EXPERT_UP}},
    [GB_EXPERT_DOWN] = {GB_OP_EXPERT_LINEAR, {GB_EXPERT_INNER, OTHER, GB_EXPERT_ROUTE}},
    [GB_EXPERT_COMBINE] = {GB_OP_COMBINE_EXPERTS, {GB_EXPERT_DOWN, OTHER}},
    [GB_EXPERT_SHARED_SILU] = {GB_OP_SILU, {GB_EXPERT_SHARED_GATE}},
    [GB_EXPERT_SHARED_INNER] = {GB_OP_MULTIPLY, {GB_EXPERT_SHARED_SILU, GB_EXPERT_SHARED_UP}},
    [GB_EXPERT_SHARED_DOWN] = {GB_OP_LINEAR, {GB_EXPERT_SHARED_INNER, OTHER}},
    [GB_EXPERT_SHARED_WEIGHT] = {GB_OP_SIGMOID, {GB_EXPERT_SHARED_LOGIT}},
    [GB_EXPERT_SHARED] = {GB_OP_SCALE_ROWS, {GB_EXPERT_SHARED_DOWN, GB_EXPERT_SHARED_WEIGHT}},
    [GB_EXPERT_BOTH] = {GB_OP_ADD, {GB_EXPERT_COMBINE, GB_EXPERT_SHARED}},
    [GB_EXPERT_RESIDUAL] = {GB_OP_ADD, {OTHER, GB_EXPERT_BOTH}},
};

static gb_ref bytes_of(const gb_plan *plan, gb_ref value) {
    return value == GB_NO_VALUE ? GB_NO_VALUE : plan->places[value].storage;
}

/* Whether an operand is the result that it should be, or comes from before the steps. */
static bool is_operand(const gb_plan *plan, const gb_step *steps, const gb_step *step, uint8_t operand,
                       int maker) {
    const gb_ref bytes = bytes_of(plan, step->operands[operand]);
    if (maker != OTHER)
        return bytes == bytes_of(plan, steps[maker].results[0]);
    for (const gb_step *before = steps; before < step; before++)
        if (bytes == bytes_of(plan, before->results[0]))
            return false;
    return true;
}

static bool fits(const gb_plan *plan, const gb_step *steps, int number) {
    const gb_step *step = &steps[number];
    if (step->kind != GB_STEP_NODE || step->node->op != patterns[number].op ||
        step->needs_rows != steps[0].needs_rows)
        return false;
    for (uint8_t i = 0; i < step->operand_count && i < 3; i++)
        if (!is_operand(plan, steps, step, i, patterns[number].operands[i]))
            return false;
    return true;
}

static int64_t start_of(const gb_step *slice) {
    return gb_node_int(slice->node, GB_ATTRIBUTE_START);
}

bool gb_cuda_are_expert_steps(const gb_plan *plan, uint32_t first, const uint32_t *last_reader) {
    const gb_step *steps = plan->steps + first;
    if (plan->step_count - first < GB_EXPERT_STEPS)
        return false;
    for (int i = 0; i < GB_EXPERT_STEPS; i++) {
        if (!fits(plan, steps, i))
            return false;
        for (uint8_t r = 0; r < steps[i].result_count && i < GB_EXPERT_RESIDUAL; r++)
            if (last_reader[bytes_of(plan, steps[i].results[r])] > first + GB_EXPERT_STEPS)
                return false;
    }
    const gb_shape *both = &plan->program->values[steps[GB_EXPERT_GATE_UP].results[0]].type.shape;
    const gb_shape *half = &plan->program->values[steps[GB_EXPERT_GATE].results[0]].type.shape;
    for (int i = GB_EXPERT_SHARED_GATE; i <= GB_EXPERT_GATE_UP; i++)
        if (i != GB_EXPERT_ROUTE &&
            bytes_of(plan, steps[i].operands[0]) != bytes_of(plan, steps[0].operands[0]))
            return false;
    return steps[GB_EXPERT_COMBINE].operands[1] == steps[GB_EXPERT_ROUTE].results[1] && half->rank == 3 &&
           start_of(&steps[GB_EXPERT_GATE]) == 0 && start_of(&steps[GB_EXPERT_UP]) == half->dims[2] &&
           2 * half->dims[2] == both->dims[2];
}
