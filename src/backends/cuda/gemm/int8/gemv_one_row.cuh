/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of one row in 8 bits with packed 4-bit matrices, from what row_pipeline.cuh puts into shared memory. A
 * fragment of 16 outputs has two warps, which take stages in turns. Two of the eight columns of a tensor
 * core's operand are a unit's, with zeros in all others: groups are scaled after their units' sums.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_GEMV_ONE_ROW_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_GEMV_ONE_ROW_CUH

#include "backends/cuda/gemm/int8/row_pipeline.cuh"

namespace gb_cuda {

/* A warp of a block of threads that multiplies. */
template <int GROUP>
struct int8_row_gemv : int8_row_pipeline<GROUP> {
    typedef int8_row_pipeline<GROUP> base;
    using base::barriers, base::fragment, base::lane, base::p, base::pipeline, base::shared, base::turn,
        base::x, base::unit_sums, base::x_scale;
    using base::GROUPS, base::GROUP_BYTES, base::GROUPS_AT, base::UNIT_BYTES, base::STAGE_BYTES;
    uint2 inputs[ROW_STAGE_BLOCKS][INT8_UNITS]; /* of each unit: zeros in the lanes of others */

    __device__ int8_row_gemv(const int8_row_products &products, uint8_t *memory, row_barriers &of_block,
                             float &scale)
        : base(products, memory, of_block, scale), inputs() {}

    /* ---- Multiplying ---- */

    /* make_inputs() waits for the kernels before and calls round_row. */
    template <typename MakeInputs>
    __device__ void multiply_all(const MakeInputs &make_inputs) {
        make_inputs();
        base::meet();
        if (threadIdx.x == 0)
            arrive(&barriers.has_inputs);
        copy_pipeline exchange(barriers.given + fragment, barriers.taken + fragment, 1);
        uint32_t number = 0;
        base::for_pieces([&](const tile_piece &piece) {
            int32_t sums[2] = {0, 0};
            base::for_stages(piece, [&](uint32_t at, uint32_t count) {
                if (number++ % ROW_TURNS == turn) {
                    pipeline.wait_until_full();
                    if (count == ROW_STAGE_BLOCKS)
                        add_stage<ROW_STAGE_BLOCKS>(at, sums);
                    else
                        add_stage<1>(at, sums);
                    pipeline.release(lane);
                }
                pipeline.next();
            });
            add_lanes(sums);
            const int32_t sum = lane % 4 == 0 ? sums[0] : sums[1];
            if (turn > 0)
                give_sum(exchange, sum);
            else
                finish(piece, exchange, sum);
        });
    }

    /* In each of four neighbouring lanes, their sum. */
    __device__ static void add_lanes(int32_t sums[2]) {
        for (int h = 0; h < 2; h++)
            for (int distance = 1; distance < 4; distance *= 2)
                sums[h] += __shfl_xor_sync(0xffffffffu, sums[h], distance);
    }

    /* Adds COUNT blocks of columns to the sums of rows r and r + 8, each of which four lanes share. Bytes of
     * codes are w = 16 high + low: w and w & 15 meet what put_codes has stored, which gives 16 high and low.
     */
    template <int COUNT>
    __device__ void add_stage(uint32_t block, int32_t sums[2]) {
        const uint8_t *stage = shared + pipeline.stage * STAGE_BYTES;
        load_inputs<COUNT>(block);
        int32_t of_units[COUNT][4] = {};
#pragma unroll
        for (int b = 0; b < COUNT; b++) {
            const uint4 *codes =
                reinterpret_cast<const uint4 *>(stage + b * INT8_CODE_BYTES + fragment * INT8_FRAGMENT_BYTES);
            const uint4 pairs[2] = {codes[lane], codes[WARP + lane]};
#pragma unroll
            for (int u = 0; u < INT8_UNITS; u++) {
                const uint4 pair = pairs[u / 2];
                const uint32_t first = u % 2 ? pair.z : pair.x, second = u % 2 ? pair.w : pair.y;
                const uint32_t weights[4] = {first, second, first & 0x0f0f0f0fu, second & 0x0f0f0f0fu};
                multiply_add_bytes(of_units[b], weights, inputs[b][u].x, inputs[b][u].y, of_units[b]);
            }
        }
#pragma unroll
        for (int b = 0; b < COUNT; b++)
            scale_units(stage + GROUPS_AT + b * GROUP_BYTES, block + (uint32_t)b, of_units[b], sums);
    }

    /* A lane's part of each block's inputs is of one unit. */
    template <int COUNT>
    __device__ void load_inputs(uint32_t block) {
        const uint8_t *from = x + block * INT8_UNITS * UNIT_BYTES + lane * sizeof(uint2);
#pragma unroll
        for (int b = 0; b < COUNT; b++)
#pragma unroll
            for (uint32_t u = 0; u < INT8_UNITS; u++)
                if (lane / 8 == u)
                    inputs[b][u] = *reinterpret_cast<const uint2 *>(from + b * INT8_UNITS * UNIT_BYTES);
    }

    /* A lane has the sums of one unit. */
    __device__ void scale_units(const uint8_t *groups, uint32_t block, const int32_t of_units[4],
                                int32_t sums[2]) const {
        const uint32_t unit = lane % 4;
        const uint32_t both = reinterpret_cast<const uint16_t *>(
            groups +
            fragment * GROUPS * GB_FRAGMENT_ROWS)[unit * UNIT / GROUP * (GB_FRAGMENT_ROWS / 2) + lane / 4];
        const int32_t of_inputs = unit_sums[block * INT8_UNITS + unit];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const gb_group_integers group = gb_get_group_integers(4, (uint8_t)(both >> (8 * h)));
            const int32_t sum = (of_units[2 * h] >> 4) + of_units[2 * h + 1];
            sums[h] += (sum - (int32_t)group.zero * of_inputs) * (int32_t)group.scale;
        }
    }

    /* ---- Results ---- */

    /* Of a fragment's rows r and r + 8 a quad's first lane has one and its second lane the other. */
    __device__ bool has_output() const {
        return lane % 4 < 2;
    }
    __device__ uint32_t output_in_tile() const {
        return fragment * GB_FRAGMENT_ROWS + lane % 4 * 8 + lane / 4;
    }

    /* Where the warp of a turn behind the first one hands its sum over. */
    __device__ int32_t &given(uint32_t by) const {
        int32_t *all = reinterpret_cast<int32_t *>(x + row_memory(p.columns).given_at);
        return all[(by - 1) * GB_TILE_ROWS + output_in_tile()];
    }

    __device__ void give_sum(copy_pipeline &exchange, int32_t sum) const {
        exchange.wait_until_empty();
        if (has_output())
            given(turn) = sum;
        arrive_by_warp(exchange.full, lane);
        exchange.next();
    }

    __device__ int32_t take_sum(copy_pipeline &exchange) const {
        exchange.wait_until_full();
        int32_t sum = 0;
        for (uint32_t by = 1; by < ROW_TURNS && has_output(); by++)
            sum += given(by);
        exchange.release(lane);
        exchange.next();
        return sum;
    }

    __device__ void finish(const tile_piece &piece, copy_pipeline &exchange, int32_t sum) const {
        uint32_t tile;
        const int8_matrix &m = base::matrix_of(piece.tile, &tile);
        const size_t output = (size_t)tile * GB_TILE_ROWS + output_in_tile();
        const uint16_t scale = has_output() ? m.row_scales[output] : 0; /* on its way while sums are joined */
        sum += take_sum(exchange);
        const bool is_whole = piece.end - piece.begin == p.blocks();
        if (has_output() && (is_whole || join(piece.tile, &sum)))
            m.y[output] = int8_result(sum, x_scale, gb_widen_half(scale, GB_F16));
    }

    /* Adds a piece's sum to those of the tile's other pieces; false but for the last one, which has all. One
     * exchange with memory does it, because the number of pieces stands above their sum. */
    __device__ bool join(uint32_t tile, int32_t *sum) const {
        const even_runs runs(p);
        const uint32_t first = runs.owner_of(tile * p.blocks()),
                       last = runs.owner_of((tile + 1) * p.blocks() - 1);
        unsigned long long *to = p.joined + (size_t)first * GB_TILE_ROWS + output_in_tile();
        const unsigned long long mine = (1ull << ROW_SUM_BITS) + (unsigned long long)(int64_t)*sum;
        const unsigned long long all = atomicAdd(to, mine) + mine;
        *sum = (int32_t)(uint32_t)all;
        if ((all - (unsigned long long)(int64_t)*sum) >> ROW_SUM_BITS != last - first + 1)
            return false;
        *to = 0;
        return true;
    }
};

} // namespace gb_cuda

#endif
