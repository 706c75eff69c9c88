/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of ops of which each needs only its own token of the results before it. A thread takes all of them
 * through a few tokens at a time, so that what only the chain reads never leaves its cache.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_CHAIN_H
#define GUMBEL_BACKENDS_CPU_KERNELS_CHAIN_H

#include "backends/cpu/kernels/kernels.h"

typedef struct gb_chain_part {
    gb_kernel kernel;
    gb_kernel_call call; /* as if it stood alone */
    unsigned by_token;   /* by operand, a bit: it needs only its own token of it */
    unsigned is_made;    /* by operand, a bit: it is the result of part sources[operand], in scratch */
    uint8_t sources[GB_MAX_OPERANDS];
    bool is_kept; /* others read the result */
} gb_chain_part;

struct gb_chain {
    gb_chain_part parts[GB_MOST_ROWS];
    uint32_t count;
};

/* Whether a plan's chain saves passes over memory. */
bool gb_chain_supports(const gb_plan *plan, const gb_step *step);

/* Resolves the chain of such a step: its parts, and of the step's own call, whose operands are set, the
 * results. tensors: by value. */
void gb_chain_make(const gb_plan *plan, const gb_step *step, const gb_cpu_tensor *tensors, gb_chain *chain,
                   gb_kernel_call *call);

gb_kernel_traits gb_chain_traits(const gb_kernel_call *call);

/* The kernel of a call with a chain. */
void gb_kernel_chain(const gb_kernel_call *call, const gb_worker *worker);

#endif
