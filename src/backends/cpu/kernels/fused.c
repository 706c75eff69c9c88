/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/fused.h"

static const gb_fused_kernel kernels[] = {
    {GB_FUSED_ROWS, gb_chain_supports, gb_chain_make, gb_kernel_chain},
};

const gb_fused_kernel *gb_find_fused_kernel(const gb_plan *plan, const gb_step *step) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].kind == step->fused->kind && kernels[i].supports(plan, step))
            return &kernels[i];
    return NULL;
}

bool gb_supports_fused(const gb_plan *plan, const gb_step *candidate, void *user) {
    (void)user;
    return gb_find_fused_kernel(plan, candidate) != NULL;
}
