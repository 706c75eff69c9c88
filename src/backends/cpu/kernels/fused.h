/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of fused steps, in order of preference.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_FUSED_H
#define GUMBEL_BACKENDS_CPU_KERNELS_FUSED_H

#include "backends/cpu/kernels/chain.h"

typedef struct gb_fused_kernel {
    gb_fused_kind kind;
    bool (*supports)(const gb_plan *plan, const gb_step *step);
    /* Resolves the step's parts, and of its call, whose operands are set, the results. tensors: by value. */
    void (*resolve)(const gb_plan *plan, const gb_step *step, const gb_cpu_tensor *tensors, gb_chain *chain,
                    gb_kernel_call *call);
    gb_kernel run;
} gb_fused_kernel;

/* The kernel of a fused step, NULL: there is none. */
const gb_fused_kernel *gb_find_fused_kernel(const gb_plan *plan, const gb_step *step);

/* Whether there is one: the plan's question; user is not used. */
bool gb_supports_fused(const gb_plan *plan, const gb_step *candidate, void *user);

#endif
