/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of the same input that are not quantized, as the argument of one launch.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_DENSE_MATRICES_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_DENSE_MATRICES_CUH

#include "backends/cuda/device/mma.cuh"

namespace gb_cuda {

struct dense_matrix {
    const void *weight; /* [outputs, columns] */
    gb_dtype dtype;
    float *y; /* [rows, outputs] */
    uint32_t outputs;
    uint32_t blocks_end; /* blocks of this matrix and those before it */
};

struct dense_matrices {
    dense_matrix of[GB_CUDA_MOST_JOINED];
    const float *x; /* [rows, columns] */
    uint32_t rows, columns;
};

/* The matrix of block number blockIdx.x, and the first output of the block, which has `outputs` of them. */
__device__ inline const dense_matrix &matrix_of_block(const dense_matrices &p, uint32_t outputs,
                                                      uint32_t *first) {
    uint32_t number = 0;
    while (blockIdx.x >= p.of[number].blocks_end)
        number++;
    *first = (blockIdx.x - (number ? p.of[number - 1].blocks_end : 0)) * outputs;
    return p.of[number];
}

/* Those of calls with the same input; returns how many blocks they are. */
inline uint32_t list_matrices(const gb_cuda_call *const *calls, uint32_t count, uint32_t outputs,
                              dense_matrices *p) {
    const gb_cuda_tensor *x = calls[0]->operands[0];
    uint32_t blocks = 0;
    p->x = data_of<const float>(x);
    p->rows = (uint32_t)x->dims[0];
    p->columns = (uint32_t)x->dims[1];
    for (uint32_t i = 0; i < count; i++) {
        const gb_cuda_tensor *weight = calls[i]->operands[1];
        blocks += blocks_for(weight->dims[0], outputs);
        p->of[i] = dense_matrix{weight->data, weight->dtype, data_of<float>(calls[i]->results[0]),
                                (uint32_t)weight->dims[0], blocks};
    }
    return blocks;
}

} // namespace gb_cuda

#endif
