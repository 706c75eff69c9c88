/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a layer's mixture of experts, from the choice of a token's experts to the addition of what
 * they make to the residual, as src/export/nn/experts.c builds them and arrange.h leaves them: generated
 * tokens' are two launches behind the router's (expert_mlp.cu).
 */
#ifndef GUMBEL_RUN_CUDA_EXPERT_STEPS_H
#define GUMBEL_RUN_CUDA_EXPERT_STEPS_H

#include "plan/plan.h"

enum {
    GB_EXPERT_ROUTER,
    GB_EXPERT_SHARED_GATE,
    GB_EXPERT_SHARED_UP,
    GB_EXPERT_SHARED_LOGIT,
    GB_EXPERT_ROUTE,
    GB_EXPERT_GATE_UP,
    GB_EXPERT_GATE,
    GB_EXPERT_UP,
    GB_EXPERT_SILU,
    GB_EXPERT_INNER,
    GB_EXPERT_DOWN,
    GB_EXPERT_COMBINE,
    GB_EXPERT_SHARED_SILU,
    GB_EXPERT_SHARED_INNER,
    GB_EXPERT_SHARED_DOWN,
    GB_EXPERT_SHARED_WEIGHT,
    GB_EXPERT_SHARED,
    GB_EXPERT_BOTH,
    GB_EXPERT_RESIDUAL,
    GB_EXPERT_STEPS
};

/* Whether the plan's steps from `first` on are these, and none of their results but the last is read by
 * others. last_reader: by value, one more than the last step that reads its bytes. */
bool gb_cuda_are_expert_steps(const gb_plan *plan, uint32_t first, const uint32_t *last_reader);

#endif
