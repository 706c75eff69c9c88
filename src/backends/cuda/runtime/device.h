/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's memory, and its errors as values.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_DEVICE_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_DEVICE_H

#include "base/status.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

/* OK, or status BACKEND with what was being done and what CUDA says. */
gumbel_status gb_cuda_check(cudaError_t result, const char *doing, gumbel_error *error);

/* How many devices this machine has. Errors: BACKEND, where that is none. */
gumbel_status gb_cuda_count_devices(int *count, gumbel_error *error);

/* Status MEMORY: what was needed for `what`, which completes "no memory for ..", and what the device has
 * left. */
gumbel_status gb_cuda_no_memory(uint64_t size, const char *what, gumbel_error *error);

/* Memory of the device; of both, where the device's pages move to the host as it touches them; of the host,
 * where the device can copy from and to it at full speed. `what` completes "no memory for ..". A size of 0
 * gives NULL. Errors: MEMORY, with what was needed and what there was. Free with gb_cuda_free and
 * gb_cuda_free_pinned, which NULL is allowed for. */
gumbel_status gb_cuda_allocate(uint64_t size, const char *what, void **memory, gumbel_error *error);
gumbel_status gb_cuda_allocate_managed(uint64_t size, const char *what, void **memory, gumbel_error *error);
gumbel_status gb_cuda_allocate_pinned(uint64_t size, const char *what, void **memory, gumbel_error *error);
void gb_cuda_free(void *memory);
void gb_cuda_free_pinned(void *memory);

#endif
