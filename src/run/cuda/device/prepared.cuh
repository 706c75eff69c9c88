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
    uint32_t *values; /* [rows, units, UNIT_WORDS]; NULL: nowhere */
    float *sums;      /* [rows, units, 2] */
    size_t units;
};

/* Prepares a quarter of a unit, numbered along the row, from its columns (zeros past the row's end). Lanes 2i
 * and 2i + 1 of a warp have neighbouring quarters; a whole warp calls it. */
__device__ inline void prepare_quarter(const prepared_rows &to, size_t row, size_t quarter,
                                       const float v[8]) {
    uint4 packed;
    packed.x = pack_bf16(v[0], v[4]);
    packed.y = pack_bf16(v[1], v[5]);
    packed.z = pack_bf16(v[2], v[6]);
    packed.w = pack_bf16(v[3], v[7]);
    float sum = ((low_bf16(packed.x) + high_bf16(packed.x)) + (low_bf16(packed.y) + high_bf16(packed.y))) +
                ((low_bf16(packed.z) + high_bf16(packed.z)) + (low_bf16(packed.w) + high_bf16(packed.w)));
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (quarter >= to.units * 4)
        return;
    reinterpret_cast<uint4 *>(to.values)[row * to.units * 4 + quarter] = packed;
    if (quarter % 2 == 0)
        to.sums[row * to.units * 2 + quarter / 2] = sum;
}

} // namespace gb_cuda

/* Where the rows of x are prepared in the call's scratch, for a kernel that does it in passing. */
gb_cuda::prepared_rows gb_cuda_prepared_place(const gb_cuda_call *call, const gb_cuda_tensor *x);

/* Prepares rows x [rows, columns] in the call's scratch, unless that holds them. */
gb_cuda::prepared_rows gb_cuda_prepare(const gb_cuda_call *call, const gb_cuda_tensor *x);

#endif
