/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta rule of prompts, in chunks of 64 tokens that begin at multiples of 64 positions. With S the
 * memory before a chunk, g the product of the decays up to a token and c(t, s) that of those behind s up to
 * t:
 *
 *     (I + A) U = B (V - g K S)   A = B c K K^T below the diagonal, B = diag(beta)
 *     Y = g Q S + P U             P = c Q K^T on and below the diagonal
 *     S' = g(last) S + (c(last, s) K)^T U
 *
 * All of these but S are found for all chunks at once (delta_prepare.cu), with (I + A)^-1 B; then each head
 * goes from chunk to chunk (delta_walk.cu). Rows of a chunk that no token has are zeros, with a decay of one.
 * (Yang, Kautz and Hatamizadeh, "Gated delta networks", 2024)
 */
#ifndef GUMBEL_BACKENDS_CUDA_DELTA_DELTA_CHUNKS_CUH
#define GUMBEL_BACKENDS_CUDA_DELTA_DELTA_CHUNKS_CUH

#include "backends/cuda/delta/delta_step.cuh"

namespace gb_cuda {

constexpr unsigned CHUNK = GB_CUDA_DELTA_CHUNK, BLOCK = 16 /* rows and columns of a product's operand */;
constexpr unsigned CHUNK_BLOCKS = CHUNK / BLOCK, LOWER_BLOCKS = CHUNK_BLOCKS * (CHUNK_BLOCKS + 1) / 2;

/* A chunk's keys and queries, of one key head; rows as `unit_place` says. */
struct chunk_keys {
    float key[CHUNK * SIZE], query[CHUNK * SIZE];
};

/* Of one value head: (I + A)^-1 B and P, g, and c(last, s). */
struct chunk_head {
    float solution[LOWER_BLOCKS * BLOCK * BLOCK], weights[LOWER_BLOCKS * BLOCK * BLOCK];
    float decay[CHUNK], rest[CHUNK];
};

/* Of one value head, transposed: a row is a column of the memory. */
struct chunk_values {
    float value[SIZE * CHUNK];
};

/* Some chunks of a delta net's prompts; what is prepared is ordered by chunk, then by head. */
struct delta_chunks {
    delta_step net;
    const int32_t *positions; /* of each run's first token */
    unsigned runs;
    size_t first, count; /* chunks, of the numbers that all runs have */
    bool are_last;
    chunk_keys *keys;
    chunk_head *heads;
    chunk_values *values;
};

/* Where four neighbours of a row lie among those of all rows, in units of four: reads of neighbouring rows,
 * and of every fourth one, meet no bank twice. */
__host__ __device__ inline unsigned unit_place(unsigned row, unsigned unit, unsigned units) {
    return row * units + (unit ^ ((row >> 2 & 3) << 1 ^ (row >> 1 & 1) << 2));
}

/* The same within block (i, j), j <= i, of a matrix of which only those are there. */
__host__ __device__ inline unsigned lower_place(unsigned i, unsigned j, unsigned row, unsigned unit) {
    const unsigned block = i * (i + 1) / 2 + j;
    return block * (BLOCK * BLOCK / 4) + ((row * (BLOCK / 4) + unit) ^ (row >> 1 & 1) << 2);
}

/* A chunk of a run. */
struct chunk_place {
    size_t number;       /* from v.first on */
    size_t run_first;    /* tokens of the batch: the run's */
    int first;           /* and the one of row 0, which may be before that */
    unsigned begin, end; /* rows that tokens have */

    __device__ bool has(unsigned row) const {
        return begin <= row && row < end;
    }
};

/* The number of the first chunk behind those of so many runs: each has less than two more than its tokens
 * fill. */
__host__ __device__ inline size_t chunks_before(size_t tokens, size_t runs) {
    return tokens / CHUNK + 2 * runs;
}

/* Chunk number `local` of a run, which is not before v.first; its end is not above its beginning where the
 * run has no such one. */
__device__ inline chunk_place chunk_of_run(const delta_chunks &v, size_t run, unsigned local) {
    const int first = v.net.run_first[run], after = v.net.run_first[run + 1];
    const unsigned offset = (unsigned)v.positions[run] % CHUNK;
    chunk_place p = {chunks_before((size_t)first, run) + local - v.first, (size_t)first,
                     first - (int)offset + (int)(local * CHUNK), local == 0 ? offset : 0, 0};
    if (p.first < after)
        p.end = after - p.first < (int)CHUNK ? (unsigned)(after - p.first) : CHUNK;
    return p;
}

} // namespace gb_cuda

/* delta_step.cu: whether heads and convolution have these kernels' sizes, and all that a problem says of its
 * net. */
bool gb_cuda_has_delta_sizes(const gb_cuda_problem *problem);
gb_cuda::delta_step gb_cuda_delta_net_of(const gb_cuda_problem *problem);

/* Each adds a launch; the second one needs so much shared memory. */
extern const size_t gb_cuda_delta_walk_bytes;
void gb_cuda_delta_prepare(const gb_cuda::delta_chunks &chunks, gb_cuda_launch_list *launches);
void gb_cuda_delta_walk(const gb_cuda::delta_chunks &chunks, gb_cuda_launch_list *launches);

#endif
