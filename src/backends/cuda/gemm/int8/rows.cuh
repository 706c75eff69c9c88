/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows rounded to 8 bits with one scale each, and their products with integer weights. Weights that are
 * integers but for their row's scale make every sum over k an exact int32 (k < 2^17), whatever its order:
 *
 *     y = ((float)sum of codes * integers) * the input row's scale * the weight row's scale.
 *
 * Codes lie in blocks of 128 columns, the last one filled with zeros: those of all rows, then the next
 * block's. A row of a block has four units of 32 columns, of each unit the even columns and the odd ones.
 * (Ashkboos et al., "QuaRot", 2024, for the rotation)
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROWS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROWS_CUH

#include "backends/cuda/exchange/exchange.h"
#include "backends/cuda/gemm/row_lists.cuh"

namespace gb_cuda {

enum { INT8_BLOCK = 128 /* columns, and bytes of a row */ };

struct int8_rows {
    uint8_t *codes; /* [blocks, padded_rows, INT8_BLOCK] */
    float *scales;  /* [rows] */
    int32_t *sums;  /* [rows]: of all codes */
    size_t padded_rows;
    gb_cuda_layout layout; /* how the words of four columns lie in a row of a block; swizzled: of a unit the
                            * even columns, then the odd ones, in 16-byte pieces as wgmma.cuh says; by lanes:
                            * [4 lanes][units][even, odd], what each lane of mma.cuh's b reads, 32 bytes,
                            * whose halves odd rows have in the other order: then eight lanes that read a
                            * half of two rows meet no bank of shared memory twice */
};

/* How rows are rounded, and where they are stored. */
struct row_rounding {
    int8_rows to;
    unsigned rotation;             /* 0: none */
    float factor;                  /* of the scales */
    const gb_cuda_exchange *ranks; /* which have the other columns; on the device; NULL: there are none */
    unsigned first;                /* of the row's columns that this rank has; 128 divides it */

    __host__ __device__ bool is_there() const { /* before there is memory, too */
        return to.padded_rows > 0;
    }

    __device__ float scale(float of_codes) const {
        return rotation > 0 ? of_codes * factor : of_codes;
    }
};

/* A row's bytes of a block of columns. */
__device__ inline uint8_t *int8_block(const int8_rows &rows, size_t row, size_t block) {
    return rows.codes + (block * rows.padded_rows + row) * INT8_BLOCK;
}

/* A 16-byte piece of them, swizzled. */
__device__ inline uint4 *int8_piece(const int8_rows &rows, size_t row, size_t block, size_t piece) {
    return reinterpret_cast<uint4 *>(int8_block(rows, row, block)) + (piece ^ row % 8);
}

/* Where the half of a lane's bytes of a block is in those of the row, by lanes. */
__device__ inline uint32_t lane_half(size_t row, size_t lane, size_t half) {
    return (uint32_t)(lane * 32 + (half ^ row % 2) * 16);
}

/* Where the four even or odd columns of a quarter of a unit are. */
__device__ inline uint8_t *int8_quarter(const int8_rows &rows, size_t row, size_t quarter, unsigned odd) {
    const size_t block = quarter / (INT8_BLOCK / 8), piece = quarter / 4 % 4 * 2 + odd;
    return rows.layout == GB_CUDA_BYTES_BY_LANES
               ? int8_block(rows, row, block) + lane_half(row, quarter % 4, piece / 4) + piece % 4 * 4
               : reinterpret_cast<uint8_t *>(int8_piece(rows, row, block, piece)) + quarter % 4 * 4;
}

/* The result of a sum. */
__device__ inline float int8_result(int32_t sum, float row_scale, float weight_scale) {
    return (float)sum * row_scale * weight_scale;
}

} // namespace gb_cuda

/* The input of a product, which is rotated and rounded by a launch that is added unless one before has stored
 * it. */
gb_cuda::int8_rows gb_cuda_round_rows(const gb_cuda_call *product);

/* How a call's epilogue rounds its result, for all ranks where it does; not at all where it has none or
 * another. */
gb_cuda::row_rounding gb_cuda_epilogue_rounding(const gb_cuda_call *call);

/* That many rows as they lie in memory of gb_cuda_int8_rows_bytes. */
gb_cuda::int8_rows gb_cuda_place_int8_rows(uint8_t *memory, gb_cuda_layout layout, size_t rows,
                                           size_t columns);

/* gather_rounded.cu: swizzled rows of x in the order of experts, copied by a launch that is added, behind the
 * lists in the call's scratch.bytes, of which gb_cuda_gathered_bytes are needed with the lists. */
gb_cuda::int8_rows gb_cuda_gather_rounded(const gb_cuda_call *call, const gb_cuda::int8_rows &x,
                                          const gb_cuda::row_lists &lists);
uint64_t gb_cuda_gathered_bytes(const gb_cuda_problem *problem);

/* The product of all rows of a call, or with lists.expert of pairs. */
void gb_cuda_int8_product(const gb_cuda_call *call, const gb_cuda::row_lists &lists);

/* gemm_mma_int8.cu and, for many pairs on Hopper, gemm_wgmma_int8.cu: of pairs with packed matrices, in tiles
 * of the lists of as many rows as _tile_rows says, or one by one. */
size_t gb_cuda_mma_int8_tile_rows(size_t pairs, size_t experts);
void gb_cuda_expert_mma_int8(const gb_cuda_call *call, const gb_cuda::row_lists &lists);

bool gb_cuda_supports_expert_wgmma_int8(const gb_cuda_call *call);
size_t gb_cuda_wgmma_int8_tile_rows(size_t pairs, size_t experts);
void gb_cuda_expert_wgmma_int8(const gb_cuda_call *call, const gb_cuda::row_lists &lists);

#endif
