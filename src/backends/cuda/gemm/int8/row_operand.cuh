/* SPDX-License-Identifier: Apache-2.0
 *
 * One row in 8 bits as an operand of tensor cores, and a fragment of 16 outputs of a packed 4-bit matrix
 * times it. Two of the operand's eight columns are a unit's of 32 columns, with zeros in all others: groups
 * are scaled after their units' sums. Bytes of codes are w = 16 high + low: w and w & 15 meet what is stored
 * here, which gives 16 high and low.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROW_OPERAND_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROW_OPERAND_CUH

#include "backends/cuda/gemm/int8/hadamard.cuh"
#include "backends/cuda/gemm/int8/rounding.cuh"
#include "backends/cuda/gemm/int8/weights.cuh"

namespace gb_cuda {

enum {
    ROW_INPUT_BYTES = 2, /* of a column of the row */
    ROW_UNIT_BYTES = UNIT * ROW_INPUT_BYTES,
};

/* A row in shared memory. */
struct row_operand {
    uint8_t *x;    /* [units, 2, 4 quarters, 8]: what the two columns of a unit have */
    int32_t *sums; /* [units] of the row's codes */

    __host__ __device__ static constexpr uint32_t bytes(uint32_t columns) {
        return columns * ROW_INPUT_BYTES + columns / UNIT * (uint32_t)sizeof(int32_t);
    }

    /* In memory of so many bytes. */
    __device__ row_operand(uint8_t *memory, uint32_t columns)
        : x(memory), sums(reinterpret_cast<int32_t *>(memory + columns * ROW_INPUT_BYTES)) {}

    /* Stores the lane's EACH columns, 4 or 8, from a multiple of that on. A whole warp calls it; is_there:
     * the columns are the row's. */
    template <int EACH>
    __device__ void store(const row_divisor &by, uint32_t column, bool is_there, const float v[EACH]) const {
        uint32_t words[2];
        int32_t sum = by.find_codes<EACH>(v, words);
        for (unsigned distance = 1; distance < UNIT / EACH; distance *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, (int)distance);
        if (!is_there)
            return;
        uint8_t *to = x + column / UNIT * ROW_UNIT_BYTES + column % UNIT / 8 * 8;
        if (EACH == 8)
            put_codes(reinterpret_cast<uint32_t *>(to), words[0], words[1]);
        else
            put_codes(reinterpret_cast<uint16_t *>(to) + column % 8 / 4, words[0], words[1]);
        if (column % UNIT == 0)
            sums[column / UNIT] = sum;
    }

    /* What a quarter of a unit's columns, or half of it, has in both columns of the operand: in the first one
     * the odd columns' codes, which w meets, and their negatives, in the second one the even ones' for w
     * & 15. */
    template <typename Word>
    __device__ static void put_codes(Word *to, uint32_t even, uint32_t odd) {
        constexpr unsigned WORDS = 4 / sizeof(Word), SECOND = UNIT / sizeof(Word);
        to[0] = (Word)odd;
        to[WORDS] = (Word)negatives(odd);
        to[SECOND] = 0;
        to[SECOND + WORDS] = (Word)even;
    }

    /* Of four bytes, none of which is -128. */
    __device__ static uint32_t negatives(uint32_t bytes) {
        const uint32_t inverted = ~bytes;
        return ((inverted & 0x7f7f7f7fu) + 0x01010101u) ^ (inverted & 0x80808080u);
    }

    /* Loads the lane's part of a block of 128 columns, which is of one unit; to: zeros in the others. */
    __device__ void load(uint32_t block, uint2 to[INT8_UNITS]) const {
        const uint32_t lane = threadIdx.x % WARP;
        const uint2 *from = reinterpret_cast<const uint2 *>(x + block * INT8_UNITS * ROW_UNIT_BYTES) + lane;
#pragma unroll
        for (uint32_t u = 0; u < INT8_UNITS; u++)
            load_shared_if(lane / 8 == u, from, to[u]);
    }
};

/* Adds a fragment's block of columns, of whose codes the lane has those, to sums of rows r and r + 8 (r =
 * lane / 4), two for each: the lane has those of unit lane % 4. */
__device__ inline void add_units(const uint4 codes[2], const uint2 inputs[INT8_UNITS], int32_t of_units[4]) {
#pragma unroll
    for (int u = 0; u < INT8_UNITS; u++) {
        const uint4 pair = codes[u / 2];
        const uint32_t first = u % 2 ? pair.z : pair.x, second = u % 2 ? pair.w : pair.y;
        const uint32_t weights[4] = {first, second, first & 0x0f0f0f0fu, second & 0x0f0f0f0fu};
        multiply_add_bytes(of_units, weights, inputs[u].x, inputs[u].y, of_units);
    }
}

/* Where a fragment's groups of a block have those of the lane's rows and unit. */
template <int GROUP>
__device__ inline const uint16_t *groups_of_lane(const uint8_t *groups) {
    const uint32_t lane = threadIdx.x % WARP, unit = lane % 4;
    return reinterpret_cast<const uint16_t *>(groups) + unit * UNIT / GROUP * (GB_FRAGMENT_ROWS / 2) +
           lane / 4;
}

/* Adds what units have, in their groups' scales, to the sums of rows r and r + 8, which four lanes share.
 * both: the bytes of the rows' groups; of_inputs: the unit's sum of codes. */
__device__ inline void scale_units(const int32_t of_units[4], uint32_t both, int32_t of_inputs,
                                   int32_t sums[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const gb_group_integers group = gb_get_group_integers(4, (uint8_t)(both >> (8 * h)));
        const int32_t sum = (of_units[2 * h] >> 4) + of_units[2 * h + 1];
        sums[h] += (sum - (int32_t)group.zero * of_inputs) * (int32_t)group.scale;
    }
}

/* In each of four neighbouring lanes, their sums. */
__device__ inline void add_quads(int32_t sums[2]) {
    for (int h = 0; h < 2; h++)
        for (int distance = 1; distance < 4; distance *= 2)
            sums[h] += __shfl_xor_sync(0xffffffffu, sums[h], distance);
}

} // namespace gb_cuda

#endif
