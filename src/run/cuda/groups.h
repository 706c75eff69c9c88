/* SPDX-License-Identifier: Apache-2.0
 *
 * What the launches of a plan are: steps that join each other (arrange.h) are one.
 */
#ifndef GUMBEL_RUN_CUDA_GROUPS_H
#define GUMBEL_RUN_CUDA_GROUPS_H

#include "run/cuda/arrange.h"

typedef struct gb_cuda_group {
    uint32_t count;                      /* of steps from this one on; 0: it joins the one before it */
    bool is_kept[GB_CUDA_MOST_TOGETHER]; /* of each step: something outside the group reads result 0 */
    char name[64];                       /* for profiles: "add rms_norm" */
    bool is_experts; /* steps from this one on are those of expert_steps.h; a group begins behind them, too */
} gb_cuda_group;

/* Makes groups [plan->step_count], by the first step of each. Free with gb_free. Errors: MEMORY. */
gumbel_status gb_cuda_groups_create(const gb_plan *plan, gb_cuda_group **groups, gumbel_error *error);

#endif
