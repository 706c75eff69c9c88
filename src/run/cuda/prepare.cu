/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/activations.h"
#include "run/cuda/device/prepared.cuh"

using namespace gb_cuda;

static __global__ void prepare(const float *x, size_t columns, prepared_rows to) {
    wait_for_earlier();
    const size_t row = blockIdx.y, quarter = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float v[8];
    for (size_t i = 0; i < 8; i++)
        v[i] = quarter * 8 + i < columns ? x[row * columns + quarter * 8 + i] : 0.0f;
    prepare_quarter(to, row, quarter, v);
}

uint64_t gb_cuda_prepared_bytes(uint64_t rows, uint64_t columns) {
    const uint64_t units = (columns + UNIT - 1) / UNIT;
    return rows * units * (UNIT_WORDS * sizeof(uint32_t) + 2 * sizeof(float));
}

prepared_rows gb_cuda_prepared_place(const gb_cuda_call *call, const gb_cuda_tensor *x) {
    const size_t columns = x->dims[x->rank - 1], rows = gb_cuda_elements(x) / columns;
    prepared_rows place;
    place.units = (columns + UNIT - 1) / UNIT;
    place.values = reinterpret_cast<uint32_t *>(call->scratch->prepared);
    place.sums = reinterpret_cast<float *>(place.values + rows * place.units * UNIT_WORDS);
    return place;
}

prepared_rows gb_cuda_prepare(const gb_cuda_call *call, const gb_cuda_tensor *x) {
    enum { THREADS = 128 };
    const size_t columns = x->dims[x->rank - 1], rows = gb_cuda_elements(x) / columns;
    const prepared_rows place = gb_cuda_prepared_place(call, x);
    if (call->scratch->prepared_from != x) {
        const dim3 grid(blocks_for(place.units * 4, THREADS), (unsigned)rows);
        GB_LAUNCH(prepare, grid, THREADS, 0, call->stream, data_of<const float>(x), columns, place);
        call->scratch->prepared_from = x;
    }
    return place;
}
