/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows as quantized products take them: rounded to bfloat16, in units of 32 columns (the last one filled up
 * with zeros), and the sums of every 16 rounded columns. Of a unit the quarter t, 8 columns, stands in 16
 * bytes, its columns in the order 0, 4, 1, 5, 2, 6, 3, 7: the four pairs are the b operands of two products.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_PREPARED_CUH
#define GUMBEL_RUN_CUDA_DEVICE_PREPARED_CUH

#include "run/cuda/device/mma.cuh"

namespace gb_cuda {

enum { UNIT = 32, UNIT_WORDS = UNIT / 2 };

struct prepared_rows {
    const uint32_t *values; /* [rows, units, UNIT_WORDS] */
    const float *sums;      /* [rows, units, 2] */
    size_t units;
};

} // namespace gb_cuda

/* Prepares rows x [rows, columns] in the call's scratch, unless that holds them. */
gb_cuda::prepared_rows gb_cuda_prepare(const gb_cuda_call *call, const gb_cuda_tensor *x);

#endif
