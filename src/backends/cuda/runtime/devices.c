/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cuda.h"
#include "backends/cuda/runtime/device.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

/* Whether something in this process uses the device; true as well where the driver does not say. */
static bool is_in_use(int number) {
    enum { VERSION = 12000 };
    CUresult (*get_state)(CUdevice, unsigned *, int *) = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    unsigned flags;
    int is_active = 1;
    if (cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", (void *)&get_state, VERSION,
                                         cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess || get_state(number, &flags, &is_active) != CUDA_SUCCESS)
        return true;
    return is_active != 0;
}

/* Asking takes memory for a context, which a device that is not chosen would keep. */
static gumbel_status find_memory(gb_device_info *device, gumbel_error *error) {
    const bool was_in_use = is_in_use(device->number);
    size_t left = 0, all = 0;
    GB_TRY(gb_cuda_check(cudaSetDevice(device->number), "taking a device", error));
    const cudaError_t result = cudaMemGetInfo(&left, &all);
    if (!was_in_use)
        cudaDeviceReset();
    device->free_bytes = left;
    device->memory_bytes = all;
    return gb_cuda_check(result, "asking for a device's memory", error);
}

/* Memory of the kinds that GPUs have sends two bits of each line a clock. */
static double find_rate(int number) {
    enum { BITS_A_CLOCK = 2, BITS_A_BYTE = 8 };
    const double hertz = 1e3;
    int kilohertz = 0, lines = 0;
    if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, number) != cudaSuccess ||
        cudaDeviceGetAttribute(&lines, cudaDevAttrGlobalMemoryBusWidth, number) != cudaSuccess)
        return 0;
    return hertz * (double)kilohertz * (double)lines * BITS_A_CLOCK / BITS_A_BYTE;
}

static gumbel_status find_device(int number, gb_device_info *device, gumbel_error *error) {
    struct cudaDeviceProp properties;
    GB_TRY(gb_cuda_check(cudaGetDeviceProperties(&properties, number), "asking for a device's properties",
                         error));
    *device = (gb_device_info){.number = number, .bytes_per_second = find_rate(number)};
    snprintf(device->name, sizeof device->name, "%s, %d multiprocessors", properties.name,
             properties.multiProcessorCount);
    return GUMBEL_OK;
}

static bool reach_each_other(int one, int other) {
    int there = 0, back = 0;
    return cudaDeviceCanAccessPeer(&there, one, other) == cudaSuccess &&
           cudaDeviceCanAccessPeer(&back, other, one) == cudaSuccess && there && back;
}

static bool can_join(const gb_device_info *devices, uint32_t count, const gb_device_info *next) {
    bool can = count == 0 || strcmp(devices->name, next->name) == 0;
    for (uint32_t i = 0; i < count && can; i++)
        can = reach_each_other(devices[i].number, next->number);
    return can;
}

static gumbel_status list_devices(int there, gb_device_info *devices, uint32_t capacity, uint32_t *count,
                                  gumbel_error *error) {
    for (int number = 0; number < there && *count < capacity; number++) {
        gb_device_info *device = &devices[*count];
        GB_TRY(find_device(number, device, error));
        if (!can_join(devices, *count, device))
            continue;
        GB_TRY(find_memory(device, error));
        (*count)++;
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_list_devices(gb_device_info *devices, uint32_t capacity, uint32_t *count,
                                   gumbel_error *error) {
    int there, current = 0;
    *count = 0;
    GB_TRY(gb_cuda_count_devices(&there, error));
    cudaGetDevice(&current);
    const gumbel_status status = list_devices(there, devices, capacity, count, error);
    cudaSetDevice(current);
    return status;
}
