/* SPDX-License-Identifier: Apache-2.0
 *
 * Long rows in a block's registers, for kernels of a few ops (norm_chain.cuh): a thread has EACH neighbouring
 * columns, loaded and stored as a whole. Sums are those of norm_sum. A block with fewer threads than pieces
 * works in rounds, each standing for other warps of the block that a row would have alone.
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_LONG_ROWS_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_LONG_ROWS_CUH

#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/norm/row_ops.cuh"

namespace gb_cuda {

/* Widths whose rows fit a block, a piece for each thread. */
inline bool fits_block(unsigned width) {
    const unsigned piece = norm_piece(width);
    return width > LONGEST_WARP_ROW && width % piece == 0 && width <= piece * NORM_THREADS;
}

inline unsigned threads_of_row(unsigned width) {
    return (width / norm_piece(width) + WARP - 1) / WARP * WARP;
}

/* Whether a multiprocessor has several of them: with fewer threads each, these run at the same time. */
inline bool are_many_rows(size_t rows) {
    return rows > gb_cuda_find_facts()->multiprocessors;
}

/* Whether floats at `data`, NULL among them, can be loaded four at a time. */
inline bool is_aligned(const void *data) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

/* Blocks that share each of a few rows, along the grid's second dim: all of them have the whole row, and so
 * its sums, but each stores and prepares a part of its own. Where rows are prepared in shared memory: 1. */
inline unsigned blocks_of_row(const prepared_rows &to, unsigned rows, unsigned width) {
    enum { MOST_BLOCKS = 128 };
    const unsigned pieces = threads_of_row(width) / WARP / 3, at_once = MOST_BLOCKS / rows;
    const unsigned blocks = pieces < at_once ? pieces : at_once;
    return blocks < 2 || (to.values && to.group == 0) ? 1 : blocks;
}

/* A block of threads_of_row threads. */
struct whole_row {
    static constexpr int ROUNDS = 1;

    __device__ unsigned warps() const {
        return blockDim.x / WARP;
    }

    /* Which warp the calling one is in a round, and whether there is such a one. */
    __device__ unsigned warp(int) const {
        return threadIdx.x / WARP;
    }

    __device__ bool has(int) const {
        return true;
    }

    /* All that have the row wait for one another. */
    __device__ void meet() const {
        __syncthreads();
    }
};

/* A block that has a row in OF_ROUNDS rounds. */
template <int OF_ROUNDS>
struct row_in_rounds {
    static constexpr int ROUNDS = OF_ROUNDS;
    unsigned count; /* warps of a whole_row of that width */

    __device__ unsigned warps() const {
        return count;
    }

    __device__ unsigned warp(int round) const {
        return threadIdx.x / WARP + (unsigned)round * (blockDim.x / WARP);
    }

    __device__ bool has(int round) const {
        return warp(round) < count;
    }

    __device__ void meet() const {
        __syncthreads();
    }
};

/* Which of the blocks that have the same row this one is: each stores and prepares a part of it. */
struct row_share {
    unsigned block, blocks;

    /* Whether the columns of a warp, of so many, are the block's. */
    __device__ bool is_mine(unsigned warp, unsigned warps) const {
        return warp * blocks / warps == block;
    }
};

template <int EACH>
struct row_part {
    float v[EACH];

    /* The column is a multiple of EACH. */
    __device__ void load(const float *row, unsigned column) {
#pragma unroll
        for (int i = 0; i < EACH; i += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(row + column + i);
            v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
        }
    }

    __device__ void store(float *row, unsigned column) const {
#pragma unroll
        for (int i = 0; i < EACH; i += 4)
            *reinterpret_cast<float4 *>(row + column + i) = float4{v[i], v[i + 1], v[i + 2], v[i + 3]};
    }
};

/* A norm's weights of a thread's columns, as they are in memory: uint16_t for bfloat16, or float. */
template <int EACH, typename Element>
struct weight_part {
    uint32_t words[EACH * sizeof(Element) / 4];

    __device__ void load(const void *weight, unsigned column) {
        constexpr unsigned count = EACH * sizeof(Element) / 4;
        const uint32_t *from = static_cast<const uint32_t *>(weight) + column * sizeof(Element) / 4;
        if constexpr (count == 2) {
            const uint2 two = *reinterpret_cast<const uint2 *>(from);
            words[0] = two.x, words[1] = two.y;
        } else {
#pragma unroll
            for (unsigned i = 0; i < count; i += 4) {
                const uint4 four = *reinterpret_cast<const uint4 *>(from + i);
                words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
            }
        }
    }

    __device__ float at(int i) const {
        if (sizeof(Element) == 4)
            return gb_float_from_bits(words[i]);
        return i % 2 ? high_bf16(words[i / 2]) : low_bf16(words[i / 2]);
    }
};

/* The first column of a thread in a round. */
template <int EACH, typename Block>
__device__ inline unsigned column_of(const Block &block, int round) {
    return (block.warp(round) * WARP + threadIdx.x % WARP) * EACH;
}

/* The sum of a row's squares, as norm_sum finds it. */
template <int EACH, typename Block>
__device__ inline float sum_of_squares(const row_part<EACH> *row, const Block &block, float *partial) {
    const unsigned lane = threadIdx.x % WARP;
#pragma unroll
    for (int r = 0; r < Block::ROUNDS; r++) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sum += row[r].v[i] * row[r].v[i];
        sum = warp_sum(sum);
        if (lane == 0 && block.has(r))
            partial[block.warp(r)] = sum;
    }
    block.meet();
    return warp_sum(lane < block.warps() ? partial[lane] : 0.0f);
}

/* What is there in place of a row's columns past its end are zeros. */
template <int EACH, typename Element, typename Block>
__device__ inline void normalize_row(row_part<EACH> *row, const normalization &norm,
                                     const weight_part<EACH, Element> *weight, const Block &block,
                                     float *partial) {
    const float factor = norm_factor(norm, sum_of_squares(row, block, partial));
#pragma unroll
    for (int r = 0; r < Block::ROUNDS; r++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const float value = row[r].v[i] * factor;
            row[r].v[i] = norm.weight ? value * (norm.weight_offset + weight[r].at(i)) : value;
        }
}

/* The block's row as a prepared row: in bytes from registers, otherwise through shared memory,
 * `width` floats aligned to 16 bytes; then all of the block calls it. */
template <int EACH>
__device__ inline void prepare_part(const prepared_rows &to, size_t number, const row_part<EACH> &row,
                                    unsigned width, float *shared) {
    const unsigned column = threadIdx.x * EACH;
    if (to.group > 0)
        return store_in_bytes<EACH>(to, number, column, row.v);
    if (column < width)
        row.store(shared, column);
    __syncthreads();
    const unsigned quarters = (unsigned)to.units * 4;
#pragma unroll 1
    for (unsigned first = 0; first < quarters; first += blockDim.x) {
        const unsigned quarter = first + threadIdx.x;
        float v[8];
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            v[i] = quarter * 8 + i < width ? shared[quarter * 8 + i] : 0.0f;
        prepare_quarter(to, number, quarter < quarters ? quarter : quarters, v);
    }
}

/* Whether a kernel whose blocks have rows of that width can prepare them so. */
inline bool can_prepare(const prepared_rows &to, unsigned width) {
    return !to.values || to.group == 0 || (to.group / norm_piece(width) <= WARP && width % to.group == 0);
}

inline size_t shared_of_row(const prepared_rows &to, unsigned width) {
    return to.values && to.group == 0 ? width * sizeof(float) : 0;
}

/* Whether a kernel can have the weight in registers, as one that is NULL or of that dtype. */
inline bool has_dtype(const normalization &norm, gb_dtype dtype) {
    return !norm.weight || (norm.dtype == dtype && is_aligned(norm.weight));
}

} // namespace gb_cuda

#endif
