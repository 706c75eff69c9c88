/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/activations.h"
#include "run/cuda/device/prepared.cuh"

using namespace gb_cuda;

/* Lanes 4q .. 4q + 3 of a warp have the quarters of one unit. */
static __global__ void prepare(const float *x, size_t columns, size_t units, uint32_t *values, float *sums) {
    wait_for_earlier();
    const size_t row = blockIdx.y, quarter = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const size_t first = quarter * 8;
    const bool is_within = quarter < units * 4;
    float v[8], sum = 0;
    for (int i = 0; i < 8; i++)
        v[i] = is_within && first + i < columns ? x[row * columns + first + i] : 0.0f;
    uint4 packed;
    packed.x = pack_bf16(v[0], v[4]);
    packed.y = pack_bf16(v[1], v[5]);
    packed.z = pack_bf16(v[2], v[6]);
    packed.w = pack_bf16(v[3], v[7]);
    sum = ((low_bf16(packed.x) + high_bf16(packed.x)) + (low_bf16(packed.y) + high_bf16(packed.y))) +
          ((low_bf16(packed.z) + high_bf16(packed.z)) + (low_bf16(packed.w) + high_bf16(packed.w)));
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (!is_within)
        return;
    reinterpret_cast<uint4 *>(values)[row * units * 4 + quarter] = packed;
    if (quarter % 2 == 0)
        sums[row * units * 2 + quarter / 2] = sum;
}

uint64_t gb_cuda_prepared_bytes(uint64_t rows, uint64_t columns) {
    const uint64_t units = (columns + UNIT - 1) / UNIT;
    return rows * units * (UNIT_WORDS * sizeof(uint32_t) + 2 * sizeof(float));
}

prepared_rows gb_cuda_prepare(const gb_cuda_call *call, const gb_cuda_tensor *x) {
    enum { THREADS = 128 };
    gb_cuda_scratch *scratch = call->scratch;
    const size_t columns = x->dims[x->rank - 1], rows = gb_cuda_elements(x) / columns;
    const size_t units = (columns + UNIT - 1) / UNIT;
    uint32_t *values = reinterpret_cast<uint32_t *>(scratch->prepared);
    float *sums = reinterpret_cast<float *>(values + rows * units * UNIT_WORDS);
    if (scratch->prepared_from != x) {
        const dim3 grid(blocks_for(units * 4, THREADS), (unsigned)rows);
        GB_LAUNCH(prepare, grid, THREADS, 0, call->stream, data_of<const float>(x), columns, units, values,
                  sums);
        scratch->prepared_from = x;
    }
    return prepared_rows{values, sums, units};
}
