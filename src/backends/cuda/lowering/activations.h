/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared rows: activations as the tensor cores' GEMMs read them. gemm/prepared.cuh has their layouts.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_ACTIVATIONS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_ACTIVATIONS_H

#include "tensor/dtype.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backends/cuda/lowering/kernels.h"

/* Bytes that rows of that many columns take for a weight of that dtype (GB_QUANTIZED or GB_BF16); the caller
 * has checked that the product is in range. */
uint64_t gb_cuda_prepared_bytes(uint64_t rows, uint64_t columns, gb_dtype weight);

/* The same rounded to 8 bits per row (gemm/int8/rows.cuh). */
uint64_t gb_cuda_int8_rows_bytes(uint64_t rows, uint64_t columns);

/* The layout of prepared rows for a weight, as a number. */
uint32_t gb_cuda_prepared_kind(const gb_cuda_call *call, const gb_cuda_tensor *x,
                               const gb_cuda_tensor *weight);

#ifdef __cplusplus
}
#endif

#endif
