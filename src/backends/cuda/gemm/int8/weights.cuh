/* SPDX-License-Identifier: Apache-2.0
 *
 * 4-bit progressive matrices in tiles (gb_packing_tiles) as tensor cores take them: a warp expands the codes
 * of a fragment of 16 outputs in registers. Of four codes in a word,
 *
 *     (q - zero) * scale + 128 = q * scale + (128 - zero * scale)
 *
 * is one multiplication and addition of 32 bits, because each byte of the result is within 0 .. 255 (Lin et
 * al., "QServe", 2024). What 128 adds to a sum is 128 times the sum of the row's codes. Columns that fill the
 * last tile meet zeros of the input (rows.cuh), which add nothing to any of these integers.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_WEIGHTS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_WEIGHTS_CUH

#include "backends/cuda/device/mma.cuh"
#include "backends/cuda/exchange/exchange.cuh"
#include "backends/cuda/gemm/int8/rows.cuh"

namespace gb_cuda {

enum {
    INT8_FRAGMENTS = GB_TILE_ROWS / GB_FRAGMENT_ROWS, /* of a tile; each is a warp's */
    INT8_UNITS = GB_TILE_COLUMNS / UNIT,              /* of a block of columns */
    INT8_CODE_BYTES = GB_TILE_ROWS * GB_TILE_COLUMNS / 2,
    INT8_FRAGMENT_BYTES = INT8_CODE_BYTES / INT8_FRAGMENTS,
    INT8_RAISED_BY = 128,
};

/* One matrix of a launch, in tiles; one of 8-bit codes is in fragments (mma_int8.cuh). */
struct int8_matrix {
    const uint8_t *codes;       /* [tiles, blocks, INT8_CODE_BYTES] */
    const uint8_t *groups;      /* [tiles, blocks, the bytes of the groups] */
    const uint16_t *row_scales; /* [outputs] float16 */
    float *y;                   /* [rows, stride], of which it has `outputs` columns */
    uint32_t outputs, stride;   /* outputs: without the rows that fill the last tile, which have no results */
    const gb_cuda_exchange *ranks; /* in whose memory y is stored, too; on the device; NULL: there are none */
    uint32_t tiles_end;            /* tiles of this matrix and those before it */
};

/* What the byte of a group stands for, in shared memory: it takes fewer integer instructions, of which a
 * multiprocessor does half as many as of others, to read it than to compute it. */
struct group_table {
    uint2 of[256]; /* scale, and 128 - zero * scale in each byte */

    /* By all threads of a block, before __syncthreads. */
    __device__ void fill() {
        for (uint32_t byte = threadIdx.x; byte < 256; byte += blockDim.x) {
            const gb_group_integers group = gb_get_group_integers(4, (uint8_t)byte);
            of[byte].x = group.scale;
            of[byte].y = 0x80808080u - group.zero * group.scale * 0x01010101u;
        }
    }
};

/* A group of the lane's rows r and r + 8. */
struct expanded_group {
    uint2 of[2];

    /* both: the bytes of the rows. Those of a fragment are of rows 0, 8, 1, 9 .. */
    __device__ void load(const group_table &table, uint32_t both) {
        of[0] = table.of[both & 0xff];
        of[1] = table.of[both >> 8];
    }

    /* The operand of a unit, whose words of codes are those of rows r and r + 8. */
    __device__ void expand(uint32_t first, uint32_t second, uint32_t a[4]) const {
        const uint32_t words[2] = {first, second};
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = (words[i % 2] >> (i / 2 * 4) & 0x0f0f0f0fu) * of[i % 2].x + of[i % 2].y;
    }
};

/* Blocks of columns of a call's weight, the last one filled up. */
inline uint32_t int8_blocks_of(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return blocks_for(weight->dims[weight->rank - 1], GB_TILE_COLUMNS);
}

} // namespace gb_cuda

/* Describes the matrix of a call. tiles: of the matrices before it; those of this one are added. */
gb_cuda::int8_matrix gb_cuda_int8_matrix(const gb_cuda_call *call, uint32_t *tiles);

#endif
