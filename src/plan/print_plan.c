/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/print_plan.h"

#include <string.h>

static void print_replaced(const gb_fused *fused, const gb_text_sink *sink) {
    for (uint32_t p = 0; p < fused->node_count; p++) {
        const gb_node *node = fused->nodes[p];
        if (node) /* an `if` is the sampler's */
            gb_print(sink, " %s", node->op == GB_OP_IF ? "sample" : gb_op_find(node->op)->name);
    }
}

void gb_print_step_columns(const char *kernel, int width, const gb_text_sink *sink) {
    gb_print(sink, "%5s  %-16s %-*s %s\n", "", "step", width, kernel, "weight; ops of a fused step");
}

void gb_print_step(const gb_plan *plan, uint32_t step, const char *kernel, int width,
                   const gb_text_sink *sink) {
    const gb_step *printed = &plan->steps[step];
    const bool is_control = printed->kind == GB_STEP_BRANCH || printed->kind == GB_STEP_JUMP;
    const gb_constant *weight = gb_step_weight(plan->program, printed);
    gb_print(sink, "%5u  %-16s %s", step, gb_step_name(printed), kernel);
    const int gap = width - (int)strlen(kernel);
    if (weight || printed->fused || is_control)
        gb_print(sink, "%*s", gap > 0 ? gap : 0, "");
    if (weight)
        gb_print(sink, " %s%s", weight->name, printed->fused ? ";" : "");
    if (printed->fused)
        print_replaced(printed->fused, sink);
    if (is_control)
        gb_print(sink, " to %u", printed->target);
    gb_print(sink, "\n");
}
