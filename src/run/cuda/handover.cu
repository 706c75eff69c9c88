/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/device/device.cuh"
#include "run/cuda/handover.h"

using namespace gb_cuda;

enum { THREADS = 128 };

/* A block a part. */
static __global__ void bring_in(gb_cuda_parts parts, const volatile uint32_t *from, uint32_t *to) {
    wait_for_earlier();
    const uint32_t first = parts.first[blockIdx.x], words = parts.words[blockIdx.x];
    for (uint32_t i = threadIdx.x; i < words; i += THREADS)
        to[first + i] = from[first + i];
}

static __global__ void hand_out(const int32_t *tokens, uint32_t count, const uint32_t *number,
                                volatile uint32_t *out_number, volatile int32_t *out_tokens) {
    wait_for_earlier();
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        out_tokens[i] = tokens[i];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        *out_number = *number;
}

void gb_cuda_bring_in(const gb_cuda_parts *parts, const void *from, void *to, cudaStream_t stream) {
    GB_LAUNCH(bring_in, parts->count, THREADS, 0, stream, *parts,
              static_cast<const volatile uint32_t *>(from), static_cast<uint32_t *>(to));
}

void gb_cuda_hand_out(const int32_t *tokens, uint32_t count, const uint32_t *number, gb_cuda_handed_out *out,
                      cudaStream_t stream) {
    GB_LAUNCH(hand_out, 1, THREADS, 0, stream, tokens, count, number, &out->number,
              gb_cuda_handed_tokens(out));
}
