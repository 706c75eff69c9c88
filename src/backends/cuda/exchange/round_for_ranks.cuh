/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of which each rank has some columns, rounded to 8 bits (gemm/int8/rows.cuh) in the memory of all: by
 * the largest number that all ranks have of a row, with the bits of one that has it whole.
 */
#ifndef GUMBEL_BACKENDS_CUDA_EXCHANGE_ROUND_FOR_RANKS_CUH
#define GUMBEL_BACKENDS_CUDA_EXCHANGE_ROUND_FOR_RANKS_CUH

#include "backends/cuda/exchange/exchange.cuh"
#include "backends/cuda/gemm/int8/round_parts.cuh"

namespace gb_cuda {

/* A block's rows, one after the other; where a cluster of SHARES blocks shares rows, each block has one. It
 * waits for the other ranks once a row, and once for all rows that are settled together. */
template <int EACH, int PARTS, int SHARES>
class rank_rounding {
  public:
    __device__ rank_rounding(const row_rounding &rounding, size_t own_columns)
        : r(rounding), columns(own_columns), boxes(rounding.ranks), pending(0) {}

    __device__ void add(size_t row, row_part<EACH> parts[PARTS]) {
        const row_divisor by(boxes.largest(rotate_parts<EACH, PARTS, SHARES>(r, parts)));
        const int32_t sum = store_parts<EACH, PARTS, SHARES>(r, row, columns, by, parts, true);
        copy_to_ranks(row);
        boxes.leave(pending, (uint32_t)sum);
        if (threadIdx.x == pending)
            mine = {row, by.scale, sum};
        if (++pending == GB_CUDA_ROWS_OF_BLOCK)
            settle();
    }

    __device__ void end() {
        if (pending > 0)
            settle();
        boxes.end();
    }

  private:
    const row_rounding &r;
    const size_t columns; /* of this rank */
    block_boxes boxes;
    uint32_t pending; /* rows that are not settled, of which a thread each has what follows */
    struct {
        size_t row;
        float scale;
        int32_t sum;
    } mine = {};

    /* What this block has stored of a row, in whole lines. */
    __device__ void copy_to_ranks(size_t row) const {
        constexpr unsigned PIECES = INT8_BLOCK / sizeof(uint4);
        const unsigned width = blockDim.x * EACH;
        __syncthreads();
        for (unsigned i = 0; i < PARTS; i++) {
            const unsigned first = (i * SHARES + blockIdx.x % SHARES) * width;
            for (unsigned piece = threadIdx.x; piece < width / sizeof(uint4); piece += blockDim.x) {
                const size_t block = first / INT8_BLOCK + piece / PIECES;
                uint4 *const own =
                    reinterpret_cast<uint4 *>(int8_block(r.to, row, r.first / INT8_BLOCK + block)) +
                    piece % PIECES;
                if (block * INT8_BLOCK < columns)
                    store_at_others(*r.ranks, own, *own);
            }
        }
    }

    __device__ void settle() {
        boxes.meet();
        const bool has_row = threadIdx.x < pending;
        const int32_t of_block = has_row ? mine.sum + (int32_t)boxes.sum_of_left(threadIdx.x) : 0,
                      sum = sum_of_shares<SHARES>(of_block);
        if (has_row && blockIdx.x % SHARES == 0) {
            r.to.scales[mine.row] = r.scale(mine.scale);
            r.to.sums[mine.row] = sum;
        }
        pending = 0;
    }
};

} // namespace gb_cuda

#endif
