/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"

#include <string.h>

/* ---- Products of one input ----------------------------------------------------------------------------- */

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

/* Moves the others of the input of the one at `first` behind it, small ones first, so that what follows a
 * large one does not wait for them. Returns their end. */
static uint32_t gather(gb_fuser *fuser, const gb_pattern *pattern, uint32_t first) {
    uint32_t end = first + 1;
    for (uint32_t s = first + 1; s < fuser->end; s++) {
        const gb_step *step = &fuser->plan->steps[s];
        if (!gb_is_joined(fuser, pattern, step) ||
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

/* All else that products read are constants, so that they can stand with the first of them. */
void gb_arrange_products(gb_fuser *fuser, const gb_pattern *pattern) {
    for (uint32_t s = 0; s < fuser->end; s++)
        if (gb_is_joined(fuser, pattern, &fuser->plan->steps[s]))
            s = gather(fuser, pattern, s) - 1;
}

/* ---- Slices and experts' sums -------------------------------------------------------------------------- */

static bool can_wait(const gb_step *step) {
    return step->kind == GB_STEP_NODE &&
           (step->node->op == GB_OP_SLICE || step->node->op == GB_OP_COMBINE_EXPERTS);
}

/* Only those that their own chain does not need; from the last one on, so that what they read follows them.
 */
void gb_arrange_slices(gb_fuser *fuser, const gb_pattern *pattern) {
    gb_step *steps = fuser->plan->steps;
    for (uint32_t s = fuser->end; s-- > 0;) {
        const gb_step waiting = steps[s];
        if (!can_wait(&waiting) || !gb_is_joined(fuser, pattern, &waiting))
            continue;
        uint32_t reader = s + 1;
        bool is_later = false;
        for (; reader < fuser->end && !gb_step_reads(fuser, &steps[reader], waiting.results[0]); reader++)
            is_later = is_later || !gb_is_joined(fuser, pattern, &steps[reader]);
        if (reader == fuser->end || !is_later)
            continue;
        memmove(steps + s, steps + s + 1, (reader - 1 - s) * sizeof waiting);
        steps[reader - 1] = waiting;
    }
}
