/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with matrices, from which linears.c chooses.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_PRODUCTS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_PRODUCTS_H

#include "backends/cuda/lowering/kernels.h"

/* Most matrices of one launch. */
enum { GB_CUDA_MOST_JOINED = 6 };

/* gemv.cu: decode with packed matrices; whether two can share a launch, and some that all can. */
bool gb_cuda_gemv_joins(const gb_cuda_call *call, const gb_cuda_call *other);
void gb_cuda_gemv(const gb_cuda_problem *problem);
uint64_t gb_cuda_gemv_scratch(const gb_cuda_problem *problem);

/* gemv_small.cu, gemv_bf16.cu: decode with small matrices that are not quantized, and with large bfloat16
 * ones. gemm_bf16.cu: prefill with bfloat16 ones. Matrices of one input share a launch (large ones of
 * decode where they join). */
bool gb_cuda_supports_gemv_small(const gb_cuda_call *call);
void gb_cuda_gemv_small(const gb_cuda_problem *problem);
bool gb_cuda_supports_gemv_bf16(const gb_cuda_call *call);
bool gb_cuda_gemv_bf16_joins(const gb_cuda_call *call, const gb_cuda_call *other); /* of the same x */
void gb_cuda_gemv_bf16(const gb_cuda_problem *problem);
bool gb_cuda_supports_gemm_bf16(const gb_cuda_call *call);
void gb_cuda_gemm_bf16(const gb_cuda_problem *problem);

/* One matrix each: gemm_wgmma.cu, gemm_quantized.cu, gemm_float.cu, gemv_float.cu. */
void gb_cuda_gemm_wgmma(const gb_cuda_problem *problem);
void gb_cuda_gemv_quantized(const gb_cuda_call *call);
void gb_cuda_gemm_quantized(const gb_cuda_call *call);
void gb_cuda_gemm_float(const gb_cuda_problem *problem);
void gb_cuda_gemv_float(const gb_cuda_problem *problem);

/* Limits of matrices [outputs, columns] that kernels fuse with the norms of their input: small ones, and
 * quantized ones by columns. */
enum {
    GB_CUDA_MOST_SMALL_OUTPUTS = 1024,
    GB_CUDA_MOST_SMALL_NORM_COLUMNS = 2048,
    GB_CUDA_MOST_NORM_COLUMNS = 6144
};

/* gemm_int8.cu: products of inputs that are rounded to 8 bits per row, whose sums are exact integers; those
 * of packed matrices on tensor cores (gemm_mma_int8.cu), those of one row (gemv_int8_row.cu), and on Hopper
 * those of few rows (gemv_int8.cu) and of more (gemm_wgmma_int8.cu), some in a launch. They have the same
 * bits. */
bool gb_cuda_supports_gemv_int8_row(const gb_cuda_problem *problem);
void gb_cuda_gemv_int8_row(const gb_cuda_problem *problem);
bool gb_cuda_supports_int8(const gb_cuda_call *call);
/* Not of packed matrices, which have other kernels: gemm_int8.cu reads rows as they are. */
bool gb_cuda_supports_canonical_int8(const gb_cuda_call *call);
void gb_cuda_gemm_int8(const gb_cuda_call *call);
bool gb_cuda_supports_mma_int8(const gb_cuda_call *call);
/* In tiles, as all of these kernels but gemm_mma_int8.cu want packed matrices. */
bool gb_cuda_is_in_int8_tiles(const gb_cuda_call *call);
void gb_cuda_gemm_mma_int8(const gb_cuda_problem *problem);
void gb_cuda_gemv_int8(const gb_cuda_problem *problem);
bool gb_cuda_supports_wgmma_int8(const gb_cuda_call *call);
bool gb_cuda_packed_int8_joins(const gb_cuda_call *call, const gb_cuda_call *other);
void gb_cuda_gemm_wgmma_int8(const gb_cuda_problem *problem);
uint64_t gb_cuda_gemm_wgmma_int8_scratch(const gb_cuda_problem *problem);

/* gemm_wgmma.cu: how many blocks of its GEMM run at a time; 0 where the device or the build has no wgmma. */
uint32_t gb_cuda_wgmma_blocks(void);

/* Whether wgmma computes a call with that weight (NULL: none): its tokens are prompts', the device has it,
 * and the weight is a large bfloat16 matrix, or packed with codes of 4 or 8 bits, scales of groups, and
 * columns that 64 divides. */
bool gb_cuda_supports_wgmma(const gb_cuda_call *call, const gb_cuda_tensor *weight);

/* gemm_wgmma_bf16.cu: whether a weight is one for its kernel. */
bool gb_cuda_is_large_bf16(const gb_cuda_tensor *weight);

#endif
