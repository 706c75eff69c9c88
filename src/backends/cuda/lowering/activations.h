/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared rows: activations as the tensor cores' GEMMs read them. gemm/prepared.cuh and gemm/int8/rows.cuh
 * have their layouts.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_ACTIVATIONS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_ACTIVATIONS_H

#include "tensor/dtype.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backends/cuda/lowering/kernels.h"

/* How a product's kernel wants its input: that of packed and other quantized matrices and of wgmma, and that
 * of integer ones in the layout given. */
gb_cuda_prepared gb_cuda_input_of(const gb_cuda_call *product);
gb_cuda_prepared gb_cuda_int8_input_of(const gb_cuda_call *product, gb_cuda_layout layout);

/* The same of a problem's first product, as registries name them. */
static inline gb_cuda_prepared gb_cuda_first_input(const gb_cuda_problem *problem) {
    return gb_cuda_input_of(problem->parts[0]);
}
static inline gb_cuda_prepared gb_cuda_first_input_swizzled(const gb_cuda_problem *problem) {
    return gb_cuda_int8_input_of(problem->parts[0], GB_CUDA_BYTES_SWIZZLED);
}
static inline gb_cuda_prepared gb_cuda_first_input_by_lanes(const gb_cuda_problem *problem) {
    return gb_cuda_int8_input_of(problem->parts[0], GB_CUDA_BYTES_BY_LANES);
}

/* Whether they are rounded to 8 bits per row. */
static inline bool gb_cuda_is_rounded(const gb_cuda_prepared *prepared) {
    return prepared->layout == GB_CUDA_BYTES_SWIZZLED || prepared->layout == GB_CUDA_BYTES_BY_LANES;
}

/* Bytes of prepared rows, of the sizes that `as` has; the caller has checked that the product is in range. */
uint64_t gb_cuda_prepared_size(const gb_cuda_prepared *prepared);

/* Bytes that rows of that many columns take for a weight of that dtype (GB_QUANTIZED or GB_BF16), and rounded
 * to 8 bits per row; likewise. */
uint64_t gb_cuda_prepared_bytes(uint64_t rows, uint64_t columns, gb_dtype weight);
uint64_t gb_cuda_int8_rows_bytes(uint64_t rows, uint64_t columns);

#ifdef __cplusplus
}
#endif

#endif
