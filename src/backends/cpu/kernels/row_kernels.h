/* SPDX-License-Identifier: Apache-2.0
 *
 * For kernels that work on one row of the batch at a time, which the threads take in turn.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_ROW_KERNELS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_ROW_KERNELS_H

#include "backends/cpu/kernels/kernels.h"
#include "backends/sampler/sampler.h"

static inline size_t row_count(const gb_cpu_tensor *tensor) {
    return tensor->dims[0];
}

static inline uint32_t row_length(const gb_cpu_tensor *tensor) {
    return (uint32_t)tensor->dims[1];
}

/* Element 0 of row b of operand or result tensor, as a pointer to type. */
#define ROW(type, tensor, b) ((type *)(tensor)->data + (b) * (tensor)->dims[1])
#define FOR_ROWS_OF(worker, tensor, b)                                                                       \
    for (size_t b = (worker)->index; b < row_count(tensor); b += (worker)->count)

/* Element b of a tensor of rank 1. */
#define ITEM(type, tensor, b) (((const type *)(tensor)->data)[b])

/* The penalties of row b, from the five operands that begin with the counts. */
gb_penalties gb_penalties_of(const gb_cpu_tensor *const *operands, size_t b);

#endif
