/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/arrange.h"

#include <string.h>

enum { LONGEST_HEAD = 1024 };

static bool is_node(const gb_step *step, gb_op op) {
    return step->kind == GB_STEP_NODE && step->node->op == op;
}

/* ---- Products of the same input ------------------------------------------------------------------------ */

static bool share_input(const gb_plan *plan, const gb_step *a, const gb_step *b) {
    return is_node(a, GB_OP_LINEAR) && is_node(b, GB_OP_LINEAR) && a->needs_rows == b->needs_rows &&
           plan->places[a->operands[0]].storage == plan->places[b->operands[0]].storage;
}

static void move_up(gb_plan *plan, uint32_t from, uint32_t to) {
    const gb_step moved = plan->steps[from];
    memmove(plan->steps + to + 1, plan->steps + to, (from - to) * sizeof *plan->steps);
    plan->steps[to] = moved;
}

/* Moves up to the product at `first` those that follow with its input: their other operands are constants, so
 * that nothing between can matter to them. Branches keep their targets, because they are not passed. Returns
 * how many stand together. */
static uint32_t gather_products(gb_plan *plan, uint32_t first) {
    uint32_t count = 1;
    for (uint32_t s = first + 1; s < plan->step_count && count < GB_CUDA_MOST_LINEAR; s++) {
        const gb_step *step = &plan->steps[s];
        if (step->kind == GB_STEP_BRANCH || step->kind == GB_STEP_JUMP)
            break;
        if (!share_input(plan, &plan->steps[first], step))
            continue;
        move_up(plan, s, first + count);
        plan->steps[first + count++].joins = true;
    }
    return count;
}

static bool reads(const gb_plan *plan, const gb_step *step, gb_ref value) {
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != GB_NO_VALUE &&
            plan->places[step->operands[i]].storage == plan->places[value].storage)
            return true;
    return false;
}

/* ---- Ops on rows --------------------------------------------------------------------------------------- */

/* A slice of a slice is none of row_chain.cu's views, nor are norms of long rows within a row. */
static bool is_unusual(const gb_program *program, const gb_step *step) {
    const gb_value *x = &program->values[step->operands[0]];
    const gb_shape *shape = &x->type.shape;
    if (is_node(step, GB_OP_SLICE))
        return x->kind == GB_VALUE_RESULT && program->nodes[x->index].op == GB_OP_SLICE;
    return (is_node(step, GB_OP_RMS_NORM) || is_node(step, GB_OP_L2_NORMALIZE)) && shape->rank > 2 &&
           shape->dims[shape->rank - 1] > LONGEST_HEAD;
}

/* Whether row m of the op's result depends on rows m of its operands alone, and row_chain.cu has it. */
static bool is_on_rows(const gb_program *program, const gb_step *step) {
    if (step->kind != GB_STEP_NODE || is_unusual(program, step))
        return false;
    switch (step->node->op) {
    case GB_OP_ADD:
    case GB_OP_MULTIPLY:
    case GB_OP_SCALE:
    case GB_OP_GELU_TANH:
    case GB_OP_SILU:
    case GB_OP_SIGMOID:
    case GB_OP_SLICE:
    case GB_OP_RMS_NORM:
    case GB_OP_L2_NORMALIZE:
    case GB_OP_DELTA_DECAY:
    case GB_OP_COMBINE_EXPERTS:
    case GB_OP_SCALE_ROWS:
    case GB_OP_ROPE:
        return true;
    default:
        return false;
    }
}

static int64_t rows_of(const gb_plan *plan, const gb_step *step) {
    return plan->program->values[step->results[0]].type.shape.dims[0];
}

/* Puts slices that their own chain does not need in front of what reads them: from the last one on, so that
 * what they read follows them. */
static void move_slices(gb_plan *plan, uint32_t end) {
    for (uint32_t s = end; s-- > 0;) {
        const gb_step slice = plan->steps[s];
        if (!is_node(&slice, GB_OP_SLICE) || !is_on_rows(plan->program, &slice))
            continue;
        uint32_t reader = s + 1;
        bool is_later = false;
        for (; reader < end && !reads(plan, &plan->steps[reader], slice.results[0]); reader++)
            is_later = is_later || !is_on_rows(plan->program, &plan->steps[reader]);
        if (reader == end || !is_later)
            continue;
        memmove(plan->steps + s, plan->steps + s + 1, (reader - 1 - s) * sizeof slice);
        plan->steps[reader - 1] = slice;
    }
}

/* Ops on rows join those before them. Behind a delta net's convolution so does its memory, and what follows
 * that. */
static void join_rows(gb_plan *plan) {
    uint32_t count = 0; /* steps that step s would join */
    bool in_delta_net = false;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        gb_step *step = &plan->steps[s], *before = s > 0 ? step - 1 : NULL;
        if (step->kind == GB_STEP_BRANCH || step->kind == GB_STEP_JUMP)
            return; /* a target must not be in the middle of a chain: they are further on */
        const bool begins_delta_net = is_node(step, GB_OP_CAUSAL_CONV);
        const bool is_memory = in_delta_net && is_node(step, GB_OP_GATED_DELTA);
        if (!begins_delta_net && !is_memory && !is_on_rows(plan->program, step)) {
            count = 0;
            in_delta_net = false;
            continue;
        }
        const uint32_t most = in_delta_net ? GB_CUDA_MOST_TOGETHER : GB_CUDA_MOST_CHAINED;
        step->joins = !begins_delta_net && count > 0 && count < most &&
                      step->needs_rows == before->needs_rows && rows_of(plan, step) == rows_of(plan, before);
        in_delta_net = begins_delta_net || (in_delta_net && step->joins);
        count = step->joins ? count + 1 : !is_memory;
    }
}

/* ---- Products behind rows -------------------------------------------------------------------------------
 */

/* Whether a step's matrix is one whose product can be made with the row. */
static bool can_be_made(const gb_plan *plan, const gb_step *step) {
    const gb_program *program = plan->program;
    const gb_value *weight = &program->values[step->operands[1]];
    if (!is_node(step, GB_OP_LINEAR) || weight->kind != GB_VALUE_CONSTANT)
        return false;
    const gb_type *type = &program->constants[weight->index].type;
    return type->dtype == GB_QUANTIZED ? type->shape.dims[1] <= GB_CUDA_MOST_NORMED_COLUMNS
                                       : type->shape.dims[0] <= GB_CUDA_MOST_FEW_OUTPUTS &&
                                             type->shape.dims[1] <= GB_CUDA_MOST_MADE_COLUMNS;
}

/* Products of what a chain makes in the end, some of which can be made with it. */
static void overlap_products(gb_plan *plan) {
    for (uint32_t s = 1; s < plan->step_count; s++) {
        gb_step *first = &plan->steps[s];
        const gb_step *before = first - 1;
        if (!is_node(first, GB_OP_LINEAR) || first->joins || !is_on_rows(plan->program, before) ||
            first->needs_rows != before->needs_rows || !reads(plan, first, before->results[0]))
            continue;
        first->overlaps = can_be_made(plan, first);
        for (uint32_t i = s + 1; i < plan->step_count && plan->steps[i].joins; i++)
            first->overlaps = first->overlaps || can_be_made(plan, &plan->steps[i]);
    }
}

/* ---- Log-probabilities --------------------------------------------------------------------------------- */

/* A sample step finds the log-probability of its tokens in passing. */
static void join_log_probabilities(gb_plan *plan) {
    const gb_place *places = plan->places;
    for (uint32_t s = 0; s + 2 < plan->step_count; s++) {
        const gb_step *sample = &plan->steps[s];
        gb_step *normalizer = &plan->steps[s + 1], *logprob = &plan->steps[s + 2];
        if (sample->kind != GB_STEP_SAMPLE || !is_node(normalizer, GB_OP_LOG_NORMALIZER) ||
            !is_node(logprob, GB_OP_LOG_PROBABILITY))
            continue;
        const gb_ref logits = places[sample->operands[GB_SAMPLE_LOGITS]].storage;
        normalizer->joins = logprob->joins =
            places[normalizer->operands[0]].storage == logits &&
            places[logprob->operands[0]].storage == logits &&
            places[logprob->operands[1]].storage == places[normalizer->results[0]].storage &&
            places[logprob->operands[2]].storage == places[sample->results[0]].storage;
    }
}

void gb_cuda_arrange_steps(gb_plan *plan) {
    uint32_t end = 0; /* of the steps that may be moved: nothing passes a branch */
    while (end < plan->step_count && plan->steps[end].kind != GB_STEP_BRANCH &&
           plan->steps[end].kind != GB_STEP_JUMP)
        end++;
    for (uint32_t s = 0; s < end;)
        s += is_node(&plan->steps[s], GB_OP_LINEAR) ? gather_products(plan, s) : 1;
    move_slices(plan, end);
    join_rows(plan);
    overlap_products(plan);
    join_log_probabilities(plan);
}
