/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of rows in 8 bits (rows.cuh) with a 4-bit progressive matrix (gb_packing_tiles) on Hopper
 * (wgmma), which are expanded in registers as the first operand (weights.cuh).
 *
 * Sums are exact, so k may be split over blocks of threads. A block has 128 outputs of up to 256 rows: two
 * warpgroups multiply, a thread copies ahead.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_WGMMA_INT8_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_WGMMA_INT8_CUH

#include "backends/cuda/gemm/int8/result_rows.cuh"
#include "backends/cuda/gemm/int8/send_results.cuh"

namespace gb_cuda {

enum {
    INT8_WARPGROUPS = INT8_FRAGMENTS * WARP / WARPGROUP,
    INT8_THREADS = (INT8_WARPGROUPS + 1) * WARPGROUP,
};

/* Registers of a thread in the one part of a block and in the other. */
template <int TOGETHER>
struct int8_registers {
    enum { OF_COPYING = TOGETHER > 1 ? 32 : 40, OF_MULTIPLYING = TOGETHER > 1 ? 104 : 232 };
};

/* ---- The warps that multiply --------------------------------------------------------------------------- */

/* FEWEST: an item of so many rows or less is multiplied as if it had them, one of more with 64 more, and so
 * on. Experts' items differ; a kernel for Stage::COLUMNS alone is faster. */
template <typename Stage, int FEWEST>
struct int8_multiplier : int8_sums<Stage> {
    using int8_sums<Stage>::p, int8_sums<Stage>::lane, int8_sums<Stage>::fragment, int8_sums<Stage>::sums;
    const uint8_t *stages;
    const group_table &table;
    const result_rows<Stage::COLUMNS> *rows;
    stored_fragments *stored;
    copy_pipeline pipeline, rows_pipeline, sent_pipeline;

    __device__ int8_multiplier(const int8_gemm &product, const uint8_t *in_stages, const group_table &groups,
                               const result_rows<Stage::COLUMNS> *of_results, stored_fragments *of_stored,
                               const copy_pipeline &of, const copy_pipeline &of_rows,
                               const copy_pipeline &of_sent)
        : int8_sums<Stage>(product, threadIdx.x / WARP - WARPGROUP / WARP), stages(in_stages), table(groups),
          rows(of_results), stored(of_stored), pipeline(of), rows_pipeline(of_rows), sent_pipeline(of_sent) {}

    __device__ void expand(const uint8_t *stage, uint32_t block, uint32_t weights[INT8_UNITS][4]) const {
        expand_block<Stage>(table, stage, block, fragment, weights);
#pragma unroll
        for (int i = 0; i < INT8_UNITS * 4; i++)
            keep_in_place(weights[i / 4][i % 4]);
    }

    /* The sums of the first COLUMNS rows. */
    template <int COLUMNS>
    __device__ void start_block(const uint8_t *stage, uint32_t block, uint32_t weights[INT8_UNITS][4]) {
        int32_t(&of_rows)[COLUMNS / 2] = *reinterpret_cast<int32_t(*)[COLUMNS / 2]>(&sums);
        const b_operand b = operand_b(stage + Stage::INPUTS_AT + block * Stage::INPUT_BYTES);
        begin_products();
#pragma unroll
        for (int unit = 0; unit < INT8_UNITS; unit++) {
            const uint32_t(&of_unit)[4] = weights[unit];
            start_byte_products<COLUMNS>(of_rows, of_unit, b + (unsigned)unit * B_STEP);
        }
        end_products();
    }

    __device__ const uint8_t *current_stage() const {
        return stages + pipeline.stage * Stage::BYTES;
    }

    /* Multiplies the block that `weights` are of and expands those of the next one meanwhile; of the item's
     * last one its own again, because a branch there would make products wait for one another. */
    template <int COLUMNS>
    __device__ void add_block(const int8_item &item, uint32_t at, uint32_t weights[INT8_UNITS][4],
                              uint32_t next[INT8_UNITS][4]) {
        const uint32_t block = (at - item.begin) % Stage::DEPTH;
        const bool is_last = at + 1 == item.end;
        const uint8_t *stage = current_stage();
        copy_barrier *release = nullptr;
        start_block<COLUMNS>(stage, block, weights);
        if (is_last || block + 1 == Stage::DEPTH) {
            release = &pipeline.empty[pipeline.stage];
            pipeline.next();
            if (!is_last)
                pipeline.wait_until_full();
        }
        expand(is_last ? stage : current_stage(), is_last ? block : (block + 1) % Stage::DEPTH, next);
        wait_for_products<0>();
        if (release)
            arrive_by_warp(release, lane);
    }

    /* Multiplies an item as if it had COLUMNS rows. */
    template <int COLUMNS>
    __device__ void add_rows(const int8_item &item) {
        uint32_t even[INT8_UNITS][4], odd[INT8_UNITS][4];
        this->clear();
        pipeline.wait_until_full();
        expand(current_stage(), 0, even);
        uint32_t at = item.begin;
#pragma unroll 1
        while (true) {
            add_block<COLUMNS>(item, at, even, odd);
            if (++at == item.end)
                break;
            add_block<COLUMNS>(item, at, odd, even);
            if (++at == item.end)
                break;
        }
    }

    /* Multiplies an item of more rows than COLUMNS - 64, or of any number where that is FEWEST. */
    template <int COLUMNS = FEWEST>
    __device__ void add_item(const int8_item &item) {
        if constexpr (COLUMNS < Stage::COLUMNS)
            if (item.count > COLUMNS)
                return add_item<COLUMNS + INT8_SMALL_TILE_ROWS>(item);
        add_rows<COLUMNS>(item);
    }

    __device__ void multiply_all() {
        wait_for_earlier();
        for (uint32_t i = blockIdx.x; i < p.items(); i += gridDim.x) {
            const int8_item item(p, i);
            if (item.is_empty())
                continue;
            add_item(item);
            rows_pipeline.wait_until_full();
            const bool is_stored = this->finish(item, rows[rows_pipeline.stage]);
            rows_pipeline.release(lane);
            rows_pipeline.next();
            if (p.sends)
                tell_stored(stored, sent_pipeline, fragment, is_stored);
        }
    }
};

} // namespace gb_cuda

#endif
