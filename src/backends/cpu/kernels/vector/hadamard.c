/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/hadamard.h"
#include "backends/cpu/kernels/vector/vector_sources.h"

void GB_FOR_ISA(gb_orthonormal_hadamard)(float *x, size_t count, size_t size) {
    gb_hadamard_orthonormal(x, count, size, x);
}
