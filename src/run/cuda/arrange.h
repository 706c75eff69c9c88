/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend's pass over a plan: what is computed by one launch stands together. Those are products of the
 * same input, and ops on rows of which each needs only its own row of the results before (row_chain.cu).
 */
#ifndef GUMBEL_RUN_CUDA_ARRANGE_H
#define GUMBEL_RUN_CUDA_ARRANGE_H

#include "run/plan/plan.h"

/* Steps of one launch. */
enum { GB_CUDA_MOST_LINEAR = 4, GB_CUDA_MOST_CHAINED = 12 };

/* Moves products up to the first one of their input, and sets gb_step.joins. */
void gb_cuda_arrange_steps(gb_plan *plan);

#endif
