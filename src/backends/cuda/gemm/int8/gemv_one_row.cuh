/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of one row in 8 bits with packed 4-bit matrices, from what row_pipeline.cuh puts into shared memory. A
 * fragment of 16 outputs has two warps, which take stages in turns.
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
        base::x, base::x_scale;
    using base::GROUPS, base::GROUP_BYTES, base::GROUPS_AT, base::STAGE_BYTES;

    __device__ int8_row_gemv(const int8_row_products &products, uint8_t *memory, row_barriers &of_block,
                             float &scale)
        : base(products, memory, of_block, scale) {}

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
        uint2 inputs[ROW_STAGE_BLOCKS][INT8_UNITS] = {}; /* of each unit: zeros in the lanes of others */
        for_pieces(p, [&](const tile_piece &piece) {
            const tile_result result = turn == 0 ? result_of(piece.tile) : tile_result{};
            int32_t sums[2] = {0, 0};
            for_stages<ROW_STAGE_BLOCKS>(piece, [&](uint32_t at, uint32_t count) {
                if (number++ % ROW_TURNS == turn) {
                    pipeline.wait_until_full();
                    if (count == ROW_STAGE_BLOCKS)
                        add_stage<ROW_STAGE_BLOCKS>(at, inputs, sums);
                    else
                        add_stage<1>(at, inputs, sums);
                    pipeline.release(lane);
                }
                pipeline.next();
            });
            add_quads(sums);
            const int32_t sum = lane % 4 == 0 ? sums[0] : sums[1];
            if (turn > 0)
                give_sum(exchange, sum);
            else
                finish(piece, exchange, result, sum);
        });
    }

    /* Adds COUNT blocks of columns to the sums of rows r and r + 8, each of which four lanes share. */
    template <int COUNT>
    __device__ void add_stage(uint32_t block, uint2 inputs[][INT8_UNITS], int32_t sums[2]) const {
        const uint8_t *stage = shared + pipeline.stage * STAGE_BYTES;
        int32_t of_units[COUNT][4] = {};
#pragma unroll
        for (int b = 0; b < COUNT; b++)
            x.load(block + (uint32_t)b, inputs[b]);
#pragma unroll
        for (int b = 0; b < COUNT; b++) {
            const uint4 *from =
                reinterpret_cast<const uint4 *>(stage + b * INT8_CODE_BYTES + fragment * INT8_FRAGMENT_BYTES);
            const uint4 codes[2] = {from[lane], from[WARP + lane]};
            add_units(codes, inputs[b], of_units[b]);
        }
#pragma unroll
        for (int b = 0; b < COUNT; b++) {
            const uint8_t *groups =
                stage + GROUPS_AT + b * GROUP_BYTES + fragment * GROUPS * GB_FRAGMENT_ROWS;
            scale_units(of_units[b], *groups_of_lane<GROUP>(groups),
                        x.sums[(block + (uint32_t)b) * INT8_UNITS + lane % 4], sums);
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
        int32_t *all = reinterpret_cast<int32_t *>(x.x + row_memory(p.columns).given_at);
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

    /* Where the lane's output of a tile goes, and its scale, which is on its way while the tile is
     * multiplied: memory that is busy with weights answers late. */
    struct tile_result {
        float *to; /* NULL: it has none */
        uint16_t scale;
    };

    __device__ tile_result result_of(uint32_t tile) const {
        const int8_matrix &m = p.matrix_of(tile, &tile);
        const uint32_t output = tile * GB_TILE_ROWS + output_in_tile();
        return {output < m.outputs ? m.y + output : nullptr,
                has_output() ? m.row_scales[output] : (uint16_t)0};
    }

    __device__ void finish(const tile_piece &piece, copy_pipeline &exchange, const tile_result &result,
                           int32_t sum) const {
        sum += take_sum(exchange);
        if (has_output() && (piece.is_whole(p) || join(piece.tile, &sum)) && result.to)
            *result.to = int8_result(sum, x_scale, gb_widen_half(result.scale, GB_F16));
    }

    /* Adds a piece's sum to those of the tile's other pieces; false but for the last one, which has all. */
    __device__ bool join(uint32_t tile, int32_t *sum) const {
        const piece_joint joint(p, tile, 1);
        return joint.take(output_in_tile(), joint.add(output_in_tile(), *sum), sum);
    }
};

} // namespace gb_cuda

#endif
