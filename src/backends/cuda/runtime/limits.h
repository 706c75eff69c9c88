/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the device reads its memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_LIMITS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_LIMITS_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Bytes per second over memory of that size, which is allocated and freed. Errors: MEMORY, BACKEND. */
gumbel_status gb_cuda_measure_read_rate(cudaStream_t stream, uint64_t size, double *bytes_per_second,
                                        gumbel_error *error);

#endif
