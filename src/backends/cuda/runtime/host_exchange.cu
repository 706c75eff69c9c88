/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/device/device.cuh"
#include "backends/cuda/runtime/host_exchange.h"

using namespace gb_cuda;

enum {
    THREADS = 128,
    BLOCK_WORDS = 8 * THREADS, /* of a part, for each of its blocks: a read of the host's memory takes long */
    MOST_BLOCKS = 64           /* enough reads under way to fill the link */
};

/* Some blocks a part. */
static __global__ void fetch_inputs(gb_cuda_parts parts, const volatile uint32_t *from, uint32_t *to) {
    wait_for_earlier();
    const uint32_t first = parts.first[blockIdx.x], words = parts.words[blockIdx.x];
    for (uint32_t i = blockIdx.y * THREADS + threadIdx.x; i < words; i += gridDim.y * THREADS)
        to[first + i] = from[first + i];
}

/* The next step reads what this one wrote, and writes the next version. */
__device__ static void advance_versions(const gb_cuda_advance &a) {
    const uint32_t next = *a.turn < a.spares ? *a.turn + 1 : 0;
    *a.from = *a.to;
    *a.to = next == 0 ? a.slots[0] : (int32_t)(a.first_spare + next - 1);
    *a.turn = next;
}

__device__ static bool is_stop(const int32_t *stops, uint32_t count, int32_t token) {
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        found |= stops[i] == token;
    return found;
}

__device__ static void advance_row(const gb_cuda_advance &a, uint32_t row) {
    const int32_t token = a.drawn[row];
    a.tokens[row] = token > 0 ? token : 0;
    a.positions[row]++;
    if (a.seed)
        a.seed[row] += a.temperature[row] > 0;
    if (a.turn)
        advance_versions(a);
}

static __global__ void post_results(GB_GRID_CONSTANT gb_cuda_post h) {
    __shared__ int32_t stops[GB_CUDA_MOST_STOPS];
    wait_for_earlier();
    const uint32_t number = *h.number, stop_count = h.advance.count > 0 ? *h.advance.stops.count : 0;
    volatile uint32_t *entry =
        h.mailbox.memory + (size_t)(number % h.mailbox.entries) * h.mailbox.entry_words;
    for (uint32_t r = 0; r < h.count; r++)
        for (uint32_t i = threadIdx.x; i < h.results[r].words; i += THREADS)
            entry[h.results[r].at + i] = h.results[r].from[i];
    for (uint32_t i = threadIdx.x; i < stop_count; i += THREADS)
        stops[i] = h.advance.stops.ids[i];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        *entry = number;
        *h.number = number + 1;
    }
    for (uint32_t row = threadIdx.x; row < h.advance.count; row += THREADS)
        if (!is_stop(stops, stop_count, h.advance.drawn[row]))
            advance_row(h.advance, row);
}

/* As many as the longest part keeps busy: masks have a bit a token for each row, all else has a few words. */
static unsigned blocks_of_part(const gb_cuda_parts &parts) {
    uint32_t longest = 1;
    for (uint32_t i = 0; i < parts.count; i++)
        longest = parts.words[i] > longest ? parts.words[i] : longest;
    const uint32_t blocks = (longest + BLOCK_WORDS - 1) / BLOCK_WORDS;
    return blocks < MOST_BLOCKS ? blocks : (uint32_t)MOST_BLOCKS;
}

void gb_cuda_fetch_inputs(const gb_cuda_parts *parts, const void *from, void *to, cudaStream_t stream) {
    const dim3 grid(parts->count, blocks_of_part(*parts));
    run_alone(stream, "fetch_inputs", fetch_inputs, grid, THREADS, *parts,
              static_cast<const volatile uint32_t *>(from), static_cast<uint32_t *>(to));
}

void gb_cuda_post_results(const gb_cuda_post *post, cudaStream_t stream) {
    const gb_cuda_post h = *post;
    run_alone(stream, "post_results", post_results, 1, THREADS, h);
}
