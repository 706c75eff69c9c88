/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"

#include <string.h>

/* Chains of ops on rows: each needs only its own row of the results before it. */

/* Norms within a row of longer parts, and slices of slices, are left alone. */
enum { LONGEST_PART = 1024 };

static bool is_unusual(const gb_program *program, const gb_step *step) {
    const gb_value *x = &program->values[step->operands[0]];
    const gb_shape *shape = &x->type.shape;
    if (gb_is_op(step, GB_OP_SLICE))
        return x->kind == GB_VALUE_RESULT && program->nodes[x->index].op == GB_OP_SLICE;
    return (gb_is_op(step, GB_OP_RMS_NORM) || gb_is_op(step, GB_OP_L2_NORMALIZE)) && shape->rank > 2 &&
           shape->dims[shape->rank - 1] > LONGEST_PART;
}

/* Whether row m of the op's result depends on rows m of its operands alone. */
static bool is_on_rows(const gb_program *program, const gb_step *step) {
    if (step->kind != GB_STEP_NODE || is_unusual(program, step))
        return false;
    switch (step->node->op) {
    case GB_OP_ADD:
    case GB_OP_ADD_BIAS:
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

static int64_t rows_of(const gb_fuser *fuser, const gb_step *step) {
    return fuser->plan->program->values[step->results[0]].type.shape.dims[0];
}

/* Puts slices that their own chain does not need in front of what reads them: from the last one on, so that
 * what they read follows them. */
static void move_slices(gb_fuser *fuser) {
    gb_step *steps = fuser->plan->steps;
    for (uint32_t s = fuser->end; s-- > 0;) {
        const gb_step slice = steps[s];
        if (!gb_is_op(&slice, GB_OP_SLICE) || !is_on_rows(fuser->plan->program, &slice))
            continue;
        uint32_t reader = s + 1;
        bool is_later = false;
        for (; reader < fuser->end && !gb_step_reads(fuser, &steps[reader], slice.results[0]); reader++)
            is_later = is_later || !is_on_rows(fuser->plan->program, &steps[reader]);
        if (reader == fuser->end || !is_later)
            continue;
        memmove(steps + s, steps + s + 1, (reader - 1 - s) * sizeof slice);
        steps[reader - 1] = slice;
    }
}

/* Whether a step can stand in a chain with the one before it. */
static bool goes_on(const gb_fuser *fuser, const gb_step *step) {
    return is_on_rows(fuser->plan->program, step) && step->needs_rows == step[-1].needs_rows &&
           rows_of(fuser, step) == rows_of(fuser, step - 1);
}

/* The chain of so many steps from one on. All its results have memory, for those that do not fit into a
 * block's shared memory. */
static bool fuse_chain(gb_fuser *fuser, uint32_t first, uint32_t count) {
    gb_candidate c = {.fused = {.kind = GB_FUSED_ROWS, .node_count = count}, .step_count = count};
    for (uint32_t i = 0; i < count; i++) {
        c.fused.nodes[i] = fuser->plan->steps[first + i].node;
        c.flags[i] = GB_PART_RESULT | GB_PART_WORK;
        c.steps[i] = first + i;
    }
    return gb_candidate_add_operands(fuser, &c) && gb_fuse_candidate(fuser, &c);
}

void gb_fuse_rows(gb_fuser *fuser) {
    move_slices(fuser);
    for (uint32_t s = 0, count; s < fuser->end; s += count) {
        count = 1;
        if (!is_on_rows(fuser->plan->program, &fuser->plan->steps[s]))
            continue;
        while (s + count < fuser->end && count < GB_MOST_ROWS &&
               goes_on(fuser, &fuser->plan->steps[s + count]))
            count++;
        for (uint32_t length = count; length > 0 && !fuse_chain(fuser, s, length); length--)
            ;
    }
}
