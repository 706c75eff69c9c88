/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few rows with packed 4-bit matrices, shared out among the blocks of threads of a launch. The
 * blocks of 128 columns of all tiles are one sequence, of which each block of threads has an equal run: where
 * a tile is cut, exact sums let its pieces be added in any order.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_TILE_RUNS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_TILE_RUNS_CUH

#include "backends/cuda/gemm/int8/weights.cuh"

namespace gb_cuda {

enum { JOINED_SUM_BITS = 40 /* of a sum that pieces are joined in */ };

struct tile_products {
    int8_matrix of[GB_CUDA_MOST_JOINED];
    unsigned long long *joined; /* [gridDim.x, rows, GB_TILE_ROWS] zeros, as it leaves them: of the tile that
                                 * a block begins and others go on with, the sums so far, and above
                                 * JOINED_SUM_BITS of how many pieces */
    uint32_t tiles, columns;    /* tiles: of outputs, of all matrices */
    bool keeps_tiles;           /* no tile is cut, so that runs differ by a tile */

    __host__ __device__ uint32_t blocks() const {
        return columns / GB_TILE_COLUMNS;
    }

    /* The matrix of a tile, and the tile's number among those of the matrix. */
    __device__ const int8_matrix &matrix_of(uint32_t tile, uint32_t *in_matrix) const {
        uint32_t m = 0;
#pragma unroll 1
        while (tile >= of[m].tiles_end)
            m++;
        *in_matrix = tile - (m ? of[m - 1].tiles_end : 0);
        return of[m];
    }
};

/* Blocks begin .. end - 1 of a tile's columns. */
struct tile_piece {
    uint32_t tile, begin, end;

    __device__ bool is_whole(const tile_products &p) const {
        return end - begin == p.blocks();
    }
};

/* Which blocks of all tiles each block of threads has: a run of equal length, the first ones one more. */
struct even_runs {
    uint32_t length, longer, unit; /* unit: in so many blocks */

    __device__ explicit even_runs(const tile_products &p) : unit(p.keeps_tiles ? p.blocks() : 1) {
        const uint32_t all = p.keeps_tiles ? p.tiles : p.tiles * p.blocks();
        length = all / gridDim.x;
        longer = all % gridDim.x;
    }

    __device__ uint32_t begin_of(uint32_t block) const {
        return (block * length + (block < longer ? block : longer)) * unit;
    }

    /* The block of threads that has number `at` where tiles are cut. */
    __device__ uint32_t owner_of(uint32_t at) const {
        const uint32_t of_longer = longer * (length + 1);
        return at < of_longer ? at / (length + 1) : longer + (at - of_longer) / length;
    }
};

/* Does `work` for each piece of the block's run. */
template <typename Work>
__device__ inline void for_pieces(const tile_products &p, const Work &work) {
    const even_runs runs(p);
    const uint32_t end = runs.begin_of(blockIdx.x + 1), blocks = p.blocks();
    for (uint32_t at = runs.begin_of(blockIdx.x); at < end;) {
        tile_piece piece = {at / blocks, at % blocks, blocks};
        if (piece.end - piece.begin > end - at)
            piece.end = piece.begin + end - at;
        work(piece);
        at += piece.end - piece.begin;
    }
}

/* Does `work` with the first block and the number of blocks, at most DEPTH, of each stage of a piece. */
template <uint32_t DEPTH, typename Work>
__device__ inline void for_stages(const tile_piece &piece, const Work &work) {
    for (uint32_t at = piece.begin; at < piece.end; at += DEPTH) {
        const uint32_t left = piece.end - at;
        work(at, left < DEPTH ? left : DEPTH);
    }
}

/* Where the pieces of a tile are joined, by all blocks of threads that have one. One exchange with memory
 * does it, because the number of pieces stands above their sum. */
struct piece_joint {
    unsigned long long *sums; /* [rows, GB_TILE_ROWS] */
    uint32_t pieces;

    __device__ piece_joint(const tile_products &p, uint32_t tile, uint32_t rows) {
        const even_runs runs(p);
        const uint32_t first = runs.owner_of(tile * p.blocks()),
                       last = runs.owner_of((tile + 1) * p.blocks() - 1);
        sums = p.joined + (size_t)first * rows * GB_TILE_ROWS;
        pieces = last - first + 1;
    }

    /* Adds a piece's sum to the others'. place: of the tile's. Returns what is there then. */
    __device__ unsigned long long add(uint32_t place, int32_t sum) const {
        const unsigned long long mine = (1ull << JOINED_SUM_BITS) + (unsigned long long)(int64_t)sum;
        return atomicAdd(sums + place, mine) + mine;
    }

    /* Takes the sum of all pieces from what add() returned, and leaves zeros; false but for the last piece.
     */
    __device__ bool take(uint32_t place, unsigned long long joined, int32_t *sum) const {
        *sum = (int32_t)(uint32_t)joined;
        if ((joined - (unsigned long long)(int64_t)*sum) >> JOINED_SUM_BITS != pieces)
            return false;
        sums[place] = 0;
        return true;
    }
};

} // namespace gb_cuda

#endif
