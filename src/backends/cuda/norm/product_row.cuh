/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of norms (norm_chain.cuh) in the warps of a block that multiply it, for GEMVs fused with them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_PRODUCT_ROW_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_PRODUCT_ROW_CUH

#include "backends/cuda/norm/norm_chain.cuh"

namespace gb_cuda {

enum { PRODUCT_ROW_ROUNDS = 2 };

/* Gemv::meet() lets its WARPS multiplying warps wait for one another. */
template <typename Gemv, int WARPS>
struct product_row {
    static constexpr int ROUNDS = PRODUCT_ROW_ROUNDS;
    Gemv &of;
    unsigned count; /* of warps that a block has which is the row's alone */

    __device__ unsigned warps() const {
        return count;
    }

    __device__ unsigned warp(int round) const {
        return threadIdx.x / WARP + (unsigned)round * WARPS;
    }

    __device__ bool has(int round) const {
        return warp(round) < count;
    }

    __device__ void meet() const {
        of.meet();
    }
};

} // namespace gb_cuda

#endif
