/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/passes.h"
#include "tensor/format.h"

/* Products with the same chosen experts want their rows in the same order, which the first of them leaves in
 * the scratch: others need no lists of their own where nothing has been stored there since. In a program with
 * branches the first of them may not have run. */

/* Kernels of other products with experts have no scratch. */
static bool makes_lists(const gb_cuda_step *step) {
    return step->step->kind == GB_STEP_NODE && step->step->node->op == GB_OP_EXPERT_LINEAR &&
           step->kernel->scratch;
}

/* Sizes and the kernel decide how rows are cut into tiles. */
static bool has_same_lists(const gb_cuda_step *a, const gb_cuda_step *b) {
    const gb_cuda_tensor *x = a->calls[0].operands[1], *y = b->calls[0].operands[1];
    return a->kernel == b->kernel && a->step->needs_rows == b->step->needs_rows &&
           a->calls[0].operands[2] == b->calls[0].operands[2] && x->dims[0] == y->dims[0] &&
           x->dtype == y->dtype && gb_format_equal(&x->format, &y->format);
}

void gb_cuda_share_lists(gb_cuda_lowered *lowered) {
    const gb_cuda_step *listed = NULL;
    for (uint32_t s = 0; s < lowered->plan->step_count && !lowered->has_branches; s++) {
        gb_cuda_step *step = &lowered->steps[s];
        if (step->kernel && !step->kernel->scratch)
            continue;
        const bool is_listing = step->kernel && makes_lists(step);
        if (is_listing)
            step->calls[0].has_lists = listed && has_same_lists(listed, step);
        listed = is_listing ? step : NULL;
    }
}
