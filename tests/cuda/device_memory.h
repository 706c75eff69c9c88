/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors on the device, emulated or real, for tests of single kernels.
 */
#ifndef GUMBEL_TESTS_CUDA_DEVICE_MEMORY_H
#define GUMBEL_TESTS_CUDA_DEVICE_MEMORY_H

#include "backends/cuda/lowering/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ends the program with ctest's status for a skipped test where there is no device. */
static inline void need_device(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0)
        return;
    printf("skipped: this machine has no CUDA device\n");
    exit(77);
}

static inline void assert_cuda(cudaError_t result) {
    if (result != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(result));
}

static inline void *device_copy(const void *data, size_t size) {
    void *memory;
    assert_cuda(cudaMalloc(&memory, size + 64)); /* kernels read whole words at the end of a weight */
    if (data)
        assert_cuda(cudaMemcpy(memory, data, size, cudaMemcpyHostToDevice));
    return memory;
}

/* A tensor with a copy of data, or with none; free with free_on_device. */
static inline gb_cuda_tensor device_tensor(gb_dtype dtype, const void *data, int32_t rank, size_t a, size_t b,
                                           size_t c) {
    gb_cuda_tensor tensor = {.dtype = dtype, .rank = rank, .dims = {a, b, c}};
    tensor.data = device_copy(data, gb_cuda_elements(&tensor) * gb_dtype_size(dtype));
    return tensor;
}

static inline void free_on_device(const gb_cuda_tensor *tensor) {
    assert_cuda(cudaFree(tensor->data));
}

/* Waits for the device and copies a tensor's bytes. */
static inline void fetch_tensor(const gb_cuda_tensor *tensor, void *to) {
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaMemcpy(to, tensor->data, gb_cuda_elements(tensor) * gb_dtype_size(tensor->dtype),
                           cudaMemcpyDeviceToHost));
}

static inline uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* In -1 .. 1. */
static inline float next_float(uint64_t *state) {
    return (float)(next_random(state) >> 8) * 0x1p-23f - 1.0f;
}

#endif
