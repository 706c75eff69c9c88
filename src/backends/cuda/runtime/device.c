/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/device.h"

#include "backends/cuda/cuda.h"

gumbel_status gb_cuda_check(cudaError_t result, const char *doing, gumbel_error *error) {
    if (result == cudaSuccess)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_BACKEND, "cuda: %s: %s", doing, cudaGetErrorString(result));
}

gumbel_status gb_cuda_no_memory(uint64_t size, const char *what, gumbel_error *error) {
    const double gigabyte = 1e9;
    size_t left = 0, all = 0;
    cudaMemGetInfo(&left, &all);
    return gb_fail(error, GUMBEL_ERROR_MEMORY,
                   "cuda: no memory for %s: %.2f GB are needed, %.2f of the device's %.2f GB are left", what,
                   (double)size / gigabyte, (double)left / gigabyte, (double)all / gigabyte);
}

gumbel_status gb_cuda_count_devices(int *count, gumbel_error *error) {
    *count = 0;
    const cudaError_t result = cudaGetDeviceCount(count);
    if (result == cudaSuccess && *count > 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_BACKEND, "cuda: this machine has no CUDA device: %s",
                   cudaGetErrorString(result == cudaSuccess ? cudaErrorNoDevice : result));
}

static gumbel_status check_memory(cudaError_t result, uint64_t size, const char *what, void **memory,
                                  gumbel_error *error) {
    if (result == cudaSuccess)
        return GUMBEL_OK;
    *memory = NULL;
    cudaGetLastError(); /* it would be found after the next launch */
    return result == cudaErrorMemoryAllocation ? gb_cuda_no_memory(size, what, error)
                                               : gb_cuda_check(result, what, error);
}

gumbel_status gb_cuda_allocate(uint64_t size, const char *what, void **memory, gumbel_error *error) {
    *memory = NULL;
    return size ? check_memory(cudaMalloc(memory, (size_t)size), size, what, memory, error) : GUMBEL_OK;
}

gumbel_status gb_cuda_allocate_managed(uint64_t size, const char *what, void **memory, gumbel_error *error) {
    *memory = NULL;
    if (size == 0)
        return GUMBEL_OK;
    return check_memory(cudaMallocManaged(memory, (size_t)size, cudaMemAttachGlobal), size, what, memory,
                        error);
}

gumbel_status gb_cuda_allocate_pinned(uint64_t size, const char *what, void **memory, gumbel_error *error) {
    *memory = NULL;
    return size ? check_memory(cudaMallocHost(memory, (size_t)size), size, what, memory, error) : GUMBEL_OK;
}

void gb_cuda_free(void *memory) {
    if (memory)
        cudaFree(memory);
}

void gb_cuda_free_pinned(void *memory) {
    if (memory)
        cudaFreeHost(memory);
}
