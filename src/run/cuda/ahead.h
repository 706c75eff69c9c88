/* SPDX-License-Identifier: Apache-2.0
 *
 * Which weights a product of generated tokens may bring into the L2 cache when it has asked for all of its
 * own: those of the products that come next, as much as the cache keeps beside what passes through it. Between
 * products there are small ops, during which memory would have nothing to do.
 */
#ifndef GUMBEL_RUN_CUDA_AHEAD_H
#define GUMBEL_RUN_CUDA_AHEAD_H

#include "run/cuda/kernels.h"

/* Fills ahead[s] for each step s of the plan; behind the last product the first one comes. tensors: by value,
 * placed, which ahead points into. */
void gb_cuda_find_ahead(const gb_plan *plan, const gb_cuda_tensor *tensors, gb_cuda_ahead *ahead);

#endif
