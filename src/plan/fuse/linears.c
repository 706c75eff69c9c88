/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"

#include <string.h>

/* Products of one input, and the norms before them. All else that products read are constants, so that they
 * can stand with the first of them. */

/* Steps with GEMMs of one input. */
typedef struct input_products {
    uint32_t steps[GB_MAX_FUSED_NODES];
    uint32_t count;
} input_products;

static bool is_product(const gb_step *step) {
    return gb_is_op(step, GB_OP_LINEAR) ||
           (step->kind == GB_STEP_FUSED && step->fused->kind == GB_FUSED_LINEARS);
}

static void add_product(gb_candidate *c, const gb_node *node) {
    c->flags[c->fused.node_count] = GB_PART_RESULT | GB_PART_WORK;
    c->fused.nodes[c->fused.node_count++] = node;
}

/* Adds the products of a step. */
static bool add_step(gb_fuser *fuser, gb_candidate *c, uint32_t s) {
    const gb_step *step = &fuser->plan->steps[s];
    const uint32_t count = step->kind == GB_STEP_FUSED ? step->fused->node_count : 1;
    if (c->fused.node_count + count > GB_MAX_FUSED_NODES)
        return false;
    for (uint32_t i = 0; i < count; i++)
        add_product(c, step->kind == GB_STEP_FUSED ? step->fused->nodes[i] : step->node);
    c->steps[c->step_count++] = s;
    return true;
}

/* Fuses the GEMM at `first` with as many of those that follow as the backend supports. */
static void fuse_with_followers(gb_fuser *fuser, uint32_t first) {
    for (uint32_t s = first + 1, count = 1; s < fuser->end && count < GB_MOST_LINEARS; s++) {
        gb_candidate c = {.fused = {.kind = GB_FUSED_LINEARS}, .moves_up = true};
        const gb_step *step = &fuser->plan->steps[s];
        if (gb_is_op(step, GB_OP_LINEAR) &&
            gb_step_reads(fuser, &fuser->plan->steps[first], step->operands[0]) &&
            add_step(fuser, &c, first) && add_step(fuser, &c, s) && gb_candidate_add_operands(fuser, &c))
            count += gb_fuse_candidate(fuser, &c);
    }
}

/* ---- Order --------------------------------------------------------------------------------------------- */

/* Whether the matrices are small and not quantized, such as a router's. */
static bool is_small(const gb_fuser *fuser, const gb_step *step) {
    enum { FEW_OUTPUTS = 1024 };
    const gb_value *values = fuser->plan->program->values;
    for (uint32_t i = 0; i < step->result_count; i++)
        if (values[step->results[i]].type.shape.dims[1] > FEW_OUTPUTS)
            return false;
    return values[step->operands[GB_LINEARS_WEIGHTS]].type.dtype != GB_QUANTIZED;
}

static void move_up(gb_fuser *fuser, uint32_t from, uint32_t to) {
    gb_step *steps = fuser->plan->steps;
    const gb_step moved = steps[from];
    memmove(steps + to + 1, steps + to, (from - to) * sizeof *steps);
    steps[to] = moved;
}

/* Moves the other GEMMs of the input of the one at `first` behind it, small ones first, so that what
 * follows a large one does not wait for them. Returns their end. */
static uint32_t gather(gb_fuser *fuser, uint32_t first) {
    uint32_t end = first + 1;
    for (uint32_t s = first + 1; s < fuser->end; s++) {
        const gb_step *step = &fuser->plan->steps[s];
        if (!is_product(step) ||
            !gb_step_reads(fuser, step, fuser->plan->steps[first].operands[GB_LINEARS_X]) ||
            step->needs_rows != fuser->plan->steps[first].needs_rows)
            continue;
        uint32_t to = end++;
        while (to > first && is_small(fuser, step) && !is_small(fuser, &fuser->plan->steps[to - 1]))
            to--;
        move_up(fuser, s, to);
    }
    return end;
}

/* ---- Norms before products ----------------------------------------------------------------------------- */

/* Fuses norms with the first GEMMs of their last result. */
static void fuse_with_norms(gb_fuser *fuser, uint32_t norms, uint32_t products) {
    const gb_step *step = &fuser->plan->steps[norms];
    if (step->kind != GB_STEP_FUSED || step->fused->kind != GB_FUSED_NORMS ||
        gb_storage(fuser, fuser->plan->steps[products].operands[GB_LINEARS_X]) !=
            step->fused->nodes[GB_NORMS_LAST]->results[0])
        return;
    gb_candidate c = {.fused = {.kind = GB_FUSED_NORM_LINEARS, .node_count = GB_NORMS_PARTS},
                      .operand_count = GB_NORMS_OPERANDS,
                      .steps = {norms},
                      .step_count = 1,
                      .moves_up = true};
    memcpy(c.fused.nodes, step->fused->nodes, GB_NORMS_PARTS * sizeof *c.fused.nodes);
    memcpy(c.operands, step->operands, GB_NORMS_OPERANDS * sizeof *c.operands);
    for (uint32_t p = 0; p < GB_NORMS_PARTS; p++)
        c.flags[p] = GB_PART_RESULT;
    c.flags[GB_NORMS_LAST] |= GB_PART_WORK;
    if (add_step(fuser, &c, products) && gb_candidate_add_operands(fuser, &c))
        gb_fuse_candidate(fuser, &c);
}

void gb_fuse_linears(gb_fuser *fuser) {
    gb_fuse_compact(fuser);
    for (uint32_t s = 0; s < fuser->end; s++)
        if (is_product(&fuser->plan->steps[s]))
            fuse_with_followers(fuser, s);
    gb_fuse_compact(fuser);
    for (uint32_t s = 0; s < fuser->end; s++) {
        if (!is_product(&fuser->plan->steps[s]))
            continue;
        const uint32_t end = gather(fuser, s);
        if (s > 0)
            fuse_with_norms(fuser, s - 1, s);
        s = end - 1;
    }
}
