/* SPDX-License-Identifier: Apache-2.0
 *
 * gb_hadamard of tensor/hadamard.h by a warp, with its bits: a lane has some neighbouring columns, so that a
 * block of the rotation lies in one warp.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_HADAMARD_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_HADAMARD_CUH

#include "backends/cuda/device/device.cuh"

extern "C" {
#include "tensor/hadamard.h"
}

namespace gb_cuda {

enum { LANE_COLUMNS = 8, WARP_COLUMNS = WARP * LANE_COLUMNS };
static_assert((int)WARP_COLUMNS >= (int)GB_MAX_ROTATION, "a block of the rotation lies in one warp");

__device__ inline void add_and_subtract(float &low, float &high) {
    const float a = low, c = high;
    low = a + c;
    high = a - c;
}

/* Transforms the warp's columns, of which a lane has EACH, in blocks of `rotation`, at most WARP * EACH,
 * without the division; a whole warp calls it. */
template <int EACH>
__device__ inline void hadamard_of_warp(float v[EACH], unsigned rotation) {
#pragma unroll
    for (unsigned h = 1; h < EACH; h *= 2)
        if (h < rotation)
#pragma unroll
            for (unsigned i = 0; i < EACH; i++)
                if ((i & h) == 0)
                    add_and_subtract(v[i], v[i + h]);
    for (unsigned distance = 1; distance * EACH < rotation; distance *= 2) {
        const float sign = threadIdx.x % WARP & distance ? -1.0f : 1.0f;
#pragma unroll
        for (unsigned i = 0; i < EACH; i++)
            v[i] = fmaf(v[i], sign, __shfl_xor_sync(0xffffffffu, v[i], (int)distance));
    }
}

/* The same of eight columns a lane, divided so that it is orthonormal; a rotation of 0 changes nothing. */
__device__ inline void rotate_eight(float v[LANE_COLUMNS], unsigned rotation) {
    if (rotation == 0)
        return;
    hadamard_of_warp<LANE_COLUMNS>(v, rotation);
    const float scale = gb_hadamard_scale(rotation);
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        v[i] *= scale;
}

} // namespace gb_cuda

#endif
