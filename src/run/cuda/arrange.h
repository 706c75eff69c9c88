/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend's pass over a plan: what can be computed by one launch stands together. Those are products of
 * the same input; ops on rows of which each needs only its own row of the results before (row_chain.cu); and
 * a delta net's convolution, its memory and the ops on rows around them (delta_layer.h).
 */
#ifndef GUMBEL_RUN_CUDA_ARRANGE_H
#define GUMBEL_RUN_CUDA_ARRANGE_H

#include "plan/plan.h"

/* Steps of one launch: products, ops on rows, all. */
enum { GB_CUDA_MOST_LINEAR = 4, GB_CUDA_MOST_CHAINED = 12, GB_CUDA_MOST_TOGETHER = 16 };

/* Matrices [outputs, columns] whose products can be made with the row that they multiply: small ones, and
 * quantized ones of rows of so many columns. */
enum {
    GB_CUDA_MOST_FEW_OUTPUTS = 1024,
    GB_CUDA_MOST_MADE_COLUMNS = 2048,
    GB_CUDA_MOST_NORMED_COLUMNS = 6144
};

/* Moves products up to the first one of their input, and sets gb_step.joins and gb_step.overlaps. */
void gb_cuda_arrange_steps(gb_plan *plan);

#endif
