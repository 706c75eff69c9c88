/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of up to 16 rows in 8 bits with packed 4-bit matrices (gemm/int8/pipeline.cuh), on Hopper. Weights are
 * read once, ahead of the kernels before; two warps have a fragment of 16 outputs, each every second block of
 * columns, and multiply it by their own tensor-core instruction (mma).
 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/int8/pipeline.cuh"

using namespace gb_cuda;

enum {
    HALVES = 2, /* warps of a fragment */
    MULTIPLYING = HALVES * INT8_FRAGMENTS,
    GEMV_INT8_THREADS = (MULTIPLYING + 1) * WARP,
    EXCHANGED = 1, /* places for sums */
};

/* Where the second half of a fragment's warps hands its sums to the first. */
template <typename Stage>
struct exchanged_sums {
    int32_t sums[INT8_FRAGMENTS][EXCHANGED][Stage::COLUMNS / 2][WARP];
    copy_barrier full[INT8_FRAGMENTS][EXCHANGED], empty[INT8_FRAGMENTS][EXCHANGED];
};

template <typename Stage>
struct gemv_int8_warp : int8_sums<Stage> {
    using int8_sums<Stage>::p, int8_sums<Stage>::lane, int8_sums<Stage>::fragment, int8_sums<Stage>::sums;
    static_assert((int)Stage::DEPTH == (int)HALVES, "each half has a block of a stage");
    const uint8_t *stages;
    const group_table &table;
    copy_pipeline pipeline, exchange;
    int32_t (*exchanged)[Stage::COLUMNS / 2][WARP];
    uint32_t half;

    __device__ gemv_int8_warp(const int8_gemm &product, const uint8_t *in_stages, const group_table &groups,
                              const copy_pipeline &of, exchanged_sums<Stage> &with)
        : int8_sums<Stage>(product, threadIdx.x / WARP % INT8_FRAGMENTS), stages(in_stages), table(groups),
          pipeline(of), exchange(with.full[fragment], with.empty[fragment], EXCHANGED),
          exchanged(with.sums[fragment]), half(threadIdx.x / WARP / INT8_FRAGMENTS) {}

    __device__ void add_block(const uint8_t *stage) {
        uint32_t weights[INT8_UNITS][4];
        expand_block<Stage>(table, stage, half, fragment, weights);
        const uint8_t *inputs = stage + Stage::INPUTS_AT + half * Stage::INPUT_BYTES;
#pragma unroll
        for (int tile = 0; tile < Stage::COLUMNS / 8; tile++) {
            const uint8_t *row = inputs + (tile * 8 + lane / 4) * INT8_BLOCK + lane % 4 * 4;
#pragma unroll
            for (int unit = 0; unit < INT8_UNITS; unit++) {
                const uint32_t even = (unsigned)unit * 2 ^ lane / 4, odd = even ^ 1;
                int32_t *of_tile = sums + tile * 4;
                multiply_add_bytes(of_tile, weights[unit],
                                   *reinterpret_cast<const uint32_t *>(row + even * B_PIECE_BYTES),
                                   *reinterpret_cast<const uint32_t *>(row + odd * B_PIECE_BYTES), of_tile);
            }
        }
    }

    __device__ void add_item(const int8_item &item) {
        this->clear();
        for (uint32_t at = item.begin; at < item.end; at += HALVES) {
            pipeline.wait_until_full();
            if (at + half < item.end)
                add_block(stages + pipeline.stage * Stage::BYTES);
            pipeline.release(lane);
            pipeline.next();
        }
    }

    __device__ void give_sums() {
        exchange.wait_until_empty();
#pragma unroll
        for (int i = 0; i < Stage::COLUMNS / 2; i++)
            exchanged[exchange.stage][i][lane] = sums[i];
        arrive_by_warp(&exchange.full[exchange.stage], lane);
        exchange.next();
    }

    __device__ void take_sums() {
        exchange.wait_until_full();
#pragma unroll
        for (int i = 0; i < Stage::COLUMNS / 2; i++)
            sums[i] += exchanged[exchange.stage][i][lane];
        exchange.release(lane);
        exchange.next();
    }

    __device__ void multiply_all() {
        wait_for_earlier();
        for (uint32_t i = blockIdx.x; i < p.items(); i += gridDim.x) {
            const int8_item item(p, i);
            add_item(item);
            if (half > 0) {
                give_sums();
                continue;
            }
            take_sums();
            this->finish(item, rows_in_memory{p, item});
        }
    }
};

template <int COLUMNS, int GROUP>
static __global__ void __launch_bounds__(GEMV_INT8_THREADS, 1) run_gemv_int8(GB_GRID_CONSTANT int8_gemm p) {
#if defined(GB_HAS_WGMMA)
    typedef int8_stage<COLUMNS, GROUP> stage;
    __shared__ copy_barrier full[INT8_MOST_STAGES], empty[INT8_MOST_STAGES];
    __shared__ exchanged_sums<stage> exchanged;
    __shared__ group_table table;
    GB_DYNAMIC_SHARED(uint8_t, shared);
    uint8_t *stages = align_b(shared);
    const copy_pipeline pipeline(full, empty, stage::COUNT);
    if (threadIdx.x == 0) {
        pipeline.create(1, MULTIPLYING);
        for (unsigned i = 0; i < INT8_FRAGMENTS; i++)
            copy_pipeline(exchanged.full[i], exchanged.empty[i], EXCHANGED).create(DONE_ARRIVALS, 1);
        finish_barriers();
    }
    table.fill();
    __syncthreads();
    if (threadIdx.x / WARP < MULTIPLYING)
        gemv_int8_warp<stage>(p, stages, table, pipeline, exchanged).multiply_all();
    else if (threadIdx.x % WARP == 0)
        int8_copier<stage>{p, stages, pipeline}.copy_all();
#endif
}

template <int COLUMNS, int GROUP>
static void launch(const gb_cuda_call *call, const int8_gemm &p) {
    typedef int8_stage<COLUMNS, GROUP> stage;
    const size_t shared = (size_t)stage::COUNT * stage::BYTES + B_ALIGNMENT;
    auto kernel = run_gemv_int8<COLUMNS, GROUP>;
    add_launch(call->launches, "gemv_int8", kernel, gb_cuda_int8_grid(call, p), GEMV_INT8_THREADS, shared, p);
}

void gb_cuda_gemv_int8(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const int8_rows x = gb_cuda_round_rows(call);
    const int8_gemm p = gb_cuda_int8_gemm(problem->parts, problem->count, x, all_rows(call), 1);
    dispatch([&](auto columns, auto group) { launch<columns, group>(call, p); },
             one_of<8, GB_CUDA_MOST_FEW_ROWS>(p.lists.rows <= 8 ? 8 : (size_t)GB_CUDA_MOST_FEW_ROWS),
             one_of<32, 64, 128>(call->operands[1]->format.group));
}
