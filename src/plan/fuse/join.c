/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"

#include <string.h>

/* Patterns that join steps, each of which has one part or is fused already. */

bool gb_is_joined(const gb_fuser *fuser, const gb_pattern *pattern, const gb_step *step) {
    gb_match match;
    return step->kind == GB_STEP_NODE ? gb_pattern_matches(fuser, pattern, step->node, 0, &match)
                                      : step->kind == GB_STEP_FUSED && step->fused->kind == pattern->joins;
}

/* Adds a step's parts with the flags of their pattern, and the operands. */
static bool add_step(const gb_fuser *fuser, gb_candidate *c, uint32_t s) {
    const gb_step *step = &fuser->plan->steps[s];
    const gb_fused alone = {.kind = c->fused.kind, .node_count = 1, .nodes = {step->node}};
    const gb_fused *added = step->kind == GB_STEP_FUSED ? step->fused : &alone;
    const gb_pattern *pattern = gb_pattern_of(added->kind);
    if (c->fused.node_count + added->node_count > GB_MAX_FUSED_NODES)
        return false;
    if (c->step_count == 0 && added != &alone) {
        memcpy(c->operands, step->operands, sizeof c->operands);
        c->operand_count = step->operand_count;
    }
    for (uint32_t p = 0; p < added->node_count; p++) {
        c->flags[c->fused.node_count] = pattern->parts[p < pattern->part_count ? p : 0].flags;
        c->fused.nodes[c->fused.node_count++] = added->nodes[p];
    }
    c->steps[c->step_count++] = s;
    return gb_candidate_add_operands(fuser, c);
}

/* Fuses the step at `first` and every `distance`-th behind it in its place. */
static bool join(gb_fuser *fuser, const gb_pattern *pattern, uint32_t first, uint32_t count,
                 uint32_t distance) {
    gb_candidate c = {.fused = {.kind = pattern->kind}, .moves_up = true};
    for (uint32_t i = 0; i < count; i++)
        if (!add_step(fuser, &c, first + i * distance))
            return false;
    return gb_fuse_candidate(fuser, &c);
}

/* ---- Followers and neighbors --------------------------------------------------------------------------- */

static void fuse_with_followers(gb_fuser *fuser, const gb_pattern *pattern, uint32_t first) {
    const gb_ref x = fuser->plan->steps[first].operands[0];
    for (uint32_t s = first + 1, count = 1; s < fuser->end && count < pattern->most; s++) {
        const gb_step *step = &fuser->plan->steps[s];
        if (gb_is_joined(fuser, pattern, step) &&
            gb_storage(fuser, step->operands[0]) == gb_storage(fuser, x))
            count += join(fuser, pattern, first, 2, s - first);
    }
}

void gb_fuse_followers(gb_fuser *fuser, const gb_pattern *pattern) {
    for (uint32_t s = 0; s < fuser->end; s++)
        if (gb_is_joined(fuser, pattern, &fuser->plan->steps[s]))
            fuse_with_followers(fuser, pattern, s);
}

void gb_fuse_neighbors(gb_fuser *fuser, const gb_pattern *pattern) {
    for (uint32_t s = 0; s + 1 < fuser->end; s++) {
        const gb_step *step = &fuser->plan->steps[s], *next = step + 1;
        if (step->kind == GB_STEP_FUSED && step->fused->kind == pattern->before &&
            gb_is_joined(fuser, pattern, next) &&
            gb_storage(fuser, next->operands[0]) ==
                step->fused->nodes[step->fused->node_count - 1]->results[0])
            join(fuser, pattern, s, 2, 1);
    }
}

/* ---- Chains -------------------------------------------------------------------------------------------- */

static int64_t rows_of(const gb_fuser *fuser, const gb_step *step) {
    return fuser->plan->program->values[step->results[0]].type.shape.dims[0];
}

static bool goes_on(const gb_fuser *fuser, const gb_step *step) {
    return step->needs_rows == step[-1].needs_rows && rows_of(fuser, step) == rows_of(fuser, step - 1);
}

static uint32_t chain_length(const gb_fuser *fuser, const gb_pattern *pattern, uint32_t first) {
    const gb_step *steps = fuser->plan->steps;
    uint32_t s = first;
    while (s < fuser->end && s - first < pattern->most && gb_is_joined(fuser, pattern, &steps[s]) &&
           (s == first || goes_on(fuser, &steps[s])))
        s++;
    return s - first;
}

void gb_fuse_chains(gb_fuser *fuser, const gb_pattern *pattern) {
    for (uint32_t s = 0, count; s<fuser->end; s += count> 0 ? count : 1) {
        count = chain_length(fuser, pattern, s);
        for (uint32_t length = count; length > 0 && !join(fuser, pattern, s, length, 1); length--)
            ;
    }
}
