/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes that make a plan, in the order in which gb_plan_create runs them. Only this folder includes it.
 */
#ifndef GUMBEL_PLAN_PASSES_H
#define GUMBEL_PLAN_PASSES_H

#include "plan/plan.h"

/* Fills in the storage of every place: split_heads and merge_heads are views of their operand. */
void gb_plan_find_views(gb_plan *plan);

/* Makes the list of steps: the nodes in execution order, an `if` as a branch over its first region and a jump
 * over its second, with moves of the yields. With fuse, a sampler's `if` becomes one sample step. */
gumbel_status gb_plan_list_steps(gb_plan *plan, bool fuse, gumbel_error *error);

/* Whether the `if` is exactly a sampler as docs/sampling.md writes it; then *step is the sample step that
 * gives the same tokens. */
bool gb_match_sampler(gb_plan *plan, const gb_node *node, gb_step *step);

/* Removes steps whose results nothing reads and that change no state. */
gumbel_status gb_plan_remove_dead_steps(gb_plan *plan, gumbel_error *error);

/* Replaces what patterns match by fused steps, where the backend supports them. */
gumbel_status gb_plan_fuse(gb_plan *plan, const gb_plan_options *options, gumbel_error *error);

/* Gives every value that a step computes its bytes in the arena, such that values that are needed at the
 * same time do not overlap. */
gumbel_status gb_plan_place_values(gb_plan *plan, const gb_plan_options *options, gumbel_error *error);

/* The node that computes a value, or NULL for an input, constant or state. */
static inline const gb_node *gb_producer(const gb_program *program, gb_ref value) {
    const gb_value *v = &program->values[value];
    return v->kind == GB_VALUE_RESULT ? &program->nodes[v->index] : NULL;
}

#endif
