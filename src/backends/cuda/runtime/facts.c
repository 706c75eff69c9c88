/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/facts.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

enum { OWN_VARIABLES = 1024 /* of a kernel, in shared memory */ };

static gb_cuda_facts facts = {.major = 9,
                              .multiprocessors = 132,
                              .memory_bytes = (size_t)140 << 30,
                              .shared_bytes = (227 << 10) - OWN_VARIABLES};

static void ask(void) {
    struct cudaDeviceProp device;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 ||
        cudaGetDeviceProperties(&device, 0) != cudaSuccess)
        return;
    facts = (gb_cuda_facts){.is_there = true,
                            .major = device.major,
                            .multiprocessors = (uint32_t)device.multiProcessorCount,
                            .memory_bytes = device.totalGlobalMem,
                            .shared_bytes = (size_t)device.sharedMemPerBlockOptin - OWN_VARIABLES};
}

const gb_cuda_facts *gb_cuda_find_facts(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return &facts;
}

bool gb_cuda_is_hopper(void) {
    enum { HOPPER = 9 };
    return gb_cuda_find_facts()->is_there && gb_cuda_find_facts()->major >= HOPPER;
}
