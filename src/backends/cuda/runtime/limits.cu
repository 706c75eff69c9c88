/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/device/each.cuh"

extern "C" {
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/limits.h"
}

using namespace gb_cuda;

enum { THREADS = 1 << 20, ROUNDS = 8 };

/* Every 16 bytes are read once; the sum keeps the compiler from leaving that out. */
struct read_all {
    const uint4 *from;
    size_t count;
    uint32_t *sum;
    __device__ void operator()(size_t, size_t thread) const {
        uint32_t own = 0;
        for (size_t i = thread; i < count; i += THREADS) {
            const uint4 value = from[i];
            own += value.x ^ value.y ^ value.z ^ value.w;
        }
        if (own == 1)
            atomicAdd(sum, own);
    }
};

static gumbel_status measure(cudaStream_t stream, const uint8_t *memory, uint64_t size, cudaEvent_t begin,
                             cudaEvent_t end, double *bytes_per_second, gumbel_error *error) {
    const uint4 *from = reinterpret_cast<const uint4 *>(memory);
    uint32_t *sum = reinterpret_cast<uint32_t *>(const_cast<uint8_t *>(memory));
    float milliseconds = 0;
    for (int round = 0; round <= ROUNDS; round++) {
        if (round == 1) /* the first one warms up */
            GB_TRY(gb_cuda_check(cudaEventRecord(begin, stream), "timing memory", error));
        run_alone(stream, "read_all", run_each<read_all>, THREADS / EACH_THREADS, EACH_THREADS,
                  (size_t)THREADS, read_all{from, (size_t)(size / sizeof(uint4)), sum});
    }
    GB_TRY(gb_cuda_check(cudaGetLastError(), "reading memory", error));
    GB_TRY(gb_cuda_check(cudaEventRecord(end, stream), "timing memory", error));
    GB_TRY(gb_cuda_check(cudaEventSynchronize(end), "timing memory", error));
    GB_TRY(gb_cuda_check(cudaEventElapsedTime(&milliseconds, begin, end), "timing memory", error));
    *bytes_per_second = milliseconds > 0 ? (double)size * (double)ROUNDS / (1e-3 * (double)milliseconds) : 0;
    return GUMBEL_OK;
}

gumbel_status gb_cuda_measure_read_rate(cudaStream_t stream, uint64_t size, double *bytes_per_second,
                                        gumbel_error *error) {
    void *memory;
    cudaEvent_t begin = nullptr, end = nullptr;
    GB_TRY(gb_cuda_allocate(size, "measuring the read bandwidth", &memory, error));
    gumbel_status status = gb_cuda_check(cudaMemsetAsync(memory, 0, size, stream), "clearing memory", error);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(cudaEventCreate(&begin), "making an event", error);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(cudaEventCreate(&end), "making an event", error);
    if (status == GUMBEL_OK)
        status =
            measure(stream, static_cast<const uint8_t *>(memory), size, begin, end, bytes_per_second, error);
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    gb_cuda_free(memory);
    return status;
}
