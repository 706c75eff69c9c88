/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of gemv_small.cu and norm_gemv_small.cu, in float32: a lane adds every 32nd four columns in order,
 * a tree adds the lanes.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMV_SMALL_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMV_SMALL_CUH

#include "backends/cuda/gemm/dense_matrices.cuh"

namespace gb_cuda {

enum {
    SMALL_OUTPUTS = 4, /* of a block, at least */
    SMALL_FOURS = 16   /* of columns that a lane has in flight */
};

/* Four weights as they are stored, and as floats. */
template <gb_dtype DTYPE>
struct weight_four {
    uint2 both;

    __device__ float4 widened() const {
        if (DTYPE == GB_BF16)
            return {low_bf16(both.x), high_bf16(both.x), low_bf16(both.y), high_bf16(both.y)};
        return {low_half(both.x), high_half(both.x), low_half(both.y), high_half(both.y)};
    }
};
template <>
struct weight_four<GB_F32> {
    float4 four;

    __device__ float4 widened() const {
        return four;
    }
};

__device__ inline float add_four(float sum, float4 w, float4 x) {
    sum = fmaf(w.x, x.x, sum);
    sum = fmaf(w.y, x.y, sum);
    sum = fmaf(w.z, x.z, sum);
    return fmaf(w.w, x.w, sum);
}

/* A lane's fours of a row from four number `first` on. */
struct row_fours {
    float4 x[SMALL_FOURS];

    __device__ void load(const float4 *row, uint32_t first, uint32_t end) {
#pragma unroll
        for (uint32_t j = 0; j < SMALL_FOURS; j++) {
            const uint32_t i = first + j * WARP + threadIdx.x % WARP;
            x[j] = i < end ? row[i] : float4{0, 0, 0, 0};
        }
    }
};

/* A lane's fours of an output's weights. */
template <gb_dtype DTYPE, uint32_t COUNT>
struct output_fours {
    weight_four<DTYPE> w[COUNT];

    /* From four number `first` on. */
    __device__ void load(const weight_four<DTYPE> *row, uint32_t first, uint32_t end) {
#pragma unroll
        for (uint32_t j = 0; j < COUNT; j++) {
            const uint32_t i = first + j * WARP + threadIdx.x % WARP;
            if (i < end)
                w[j] = row[i];
        }
    }

    /* The sum and these times x, in the order of row_fours. */
    __device__ float multiply(const float4 *x, uint32_t first, uint32_t end, float sum) const {
#pragma unroll
        for (uint32_t part = 0; part < COUNT; part += SMALL_FOURS) {
            row_fours of_row;
            of_row.load(x, first + part * WARP, end);
#pragma unroll
            for (uint32_t j = 0; j < SMALL_FOURS; j++)
                if (first + (part + j) * WARP + threadIdx.x % WARP < end)
                    sum = add_four(sum, w[part + j].widened(), of_row.x[j]);
        }
        return sum;
    }
};

} // namespace gb_cuda

#endif
