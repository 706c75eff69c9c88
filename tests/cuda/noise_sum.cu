/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/sampler/select.cuh"

extern "C" {
#include "cuda/noise_sum.h"
}

using namespace gb_cuda;

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS) sum_noise(uint64_t words, weight_sum *sum) {
    wait_for_earlier();
    __shared__ weight_sum of_warps[THREADS / WARP];
    weight_sum own = 0;
    for (uint64_t b = (uint64_t)blockIdx.x * THREADS + threadIdx.x; b < words; b += gridDim.x * THREADS)
        own += (2 * b + 1) * mixed_bits(gb_float_bits(gb_gumbel((uint32_t)b)));
    own = block_total(own, of_warps);
    if (threadIdx.x == 0)
        atomicAdd(sum, own);
}

void add_noise(uint64_t words, uint64_t *sum) {
    const uint64_t needed = (words + THREADS - 1) / THREADS, most = 1024;
    run_alone(nullptr, "sum_noise", sum_noise, (unsigned)(needed < most ? needed : most), THREADS, words,
              reinterpret_cast<weight_sum *>(sum));
}
