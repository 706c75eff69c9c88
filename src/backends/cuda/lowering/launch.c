/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/launch.h"

#include "backends/cuda/runtime/facts.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

enum { ALIGNMENT = 16 };

/* With its own variables a kernel gets 48 KB without asking. */
static const size_t shared_without_asking = 32 * 1024;

void gb_cuda_launch_add(gb_cuda_launch_list *list, const gb_cuda_launch *launch) {
    void *launches = list->launches;
    list->has_failed = list->has_failed ||
                       !gb_grow(&launches, &list->capacity, list->count + (size_t)1, sizeof *list->launches);
    list->launches = launches;
    if (list->has_failed)
        return;
    list->launches[list->count] = *launch;
    list->launches[list->count++].parameter_count = 0;
}

void gb_cuda_launch_add_parameter(gb_cuda_launch_list *list, const void *parameter, size_t size) {
    void *bytes = list->bytes;
    const size_t at = (list->byte_count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    list->has_failed = list->has_failed || !gb_grow(&bytes, &list->byte_capacity, at + size, 1);
    list->bytes = bytes;
    if (list->has_failed)
        return;
    gb_cuda_launch *launch = &list->launches[list->count - 1];
    memcpy(list->bytes + at, parameter, size);
    launch->parameters[launch->parameter_count++] = (uint32_t)at;
    list->byte_count = at + size;
}

void gb_cuda_launch_list_clear(gb_cuda_launch_list *list) {
    list->count = 0;
    list->byte_count = 0;
    list->has_failed = false;
}

void gb_cuda_launch_list_destroy(gb_cuda_launch_list *list) {
    gb_free(list->launches);
    gb_free(list->bytes);
    *list = (gb_cuda_launch_list){0};
}

/* What a kernel may ask for is the device's: another thread's launch must not come between. */
static cudaError_t launch_with_shared(const gb_cuda_launch *launch, const cudaLaunchConfig_t *config,
                                      void **parameters) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    cudaFuncSetAttribute(launch->function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         (int)launch->shared_bytes);
    const cudaError_t result = cudaLaunchKernelExC(config, launch->function, parameters);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

cudaError_t gb_cuda_launch_run_with(const gb_cuda_launch *launch, void **parameters, cudaStream_t stream) {
    cudaLaunchAttribute attributes[2] = {{.id = cudaLaunchAttributeProgrammaticStreamSerialization},
                                         {.id = cudaLaunchAttributeClusterDimension}};
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].val.clusterDim.x = launch->cluster;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    const unsigned attribute_count = launch->cluster > 1 ? 2 : 1;
    const cudaLaunchConfig_t config = {.gridDim = launch->grid,
                                       .blockDim = launch->block,
                                       .dynamicSmemBytes = launch->shared_bytes,
                                       .stream = stream,
                                       .attrs = attributes,
                                       .numAttrs = gb_cuda_is_hopper() ? attribute_count : 0};
    return launch->shared_bytes > shared_without_asking
               ? launch_with_shared(launch, &config, parameters)
               : cudaLaunchKernelExC(&config, launch->function, parameters);
}

cudaError_t gb_cuda_launch_run(const gb_cuda_launch_list *list, uint32_t i, cudaStream_t stream) {
    const gb_cuda_launch *launch = &list->launches[i];
    void *parameters[GB_CUDA_MOST_PARAMETERS];
    for (uint32_t p = 0; p < launch->parameter_count; p++)
        parameters[p] = list->bytes + launch->parameters[p];
    return gb_cuda_launch_run_with(launch, parameters, stream);
}

cudaError_t gb_cuda_launch_list_run(const gb_cuda_launch_list *list, cudaStream_t stream) {
    cudaError_t result = list->has_failed ? cudaErrorMemoryAllocation : cudaSuccess;
    for (uint32_t i = 0; i < list->count && result == cudaSuccess; i++)
        result = gb_cuda_launch_run(list, i, stream);
    return result;
}
