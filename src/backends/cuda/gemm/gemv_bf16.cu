/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of bfloat16 matrices for decode and for chosen experts, on tensor cores. 16 outputs are the first
 * operand, so that a weight is read once for up to 16 rows of x; these enter as three bfloat16 numbers that
 * together have a float's 24 bits. Sums are float32.
 *
 * A matrix's columns are cut into stages of a line each. A few warps work on them in turns (split-K), each
 * with a pipeline of its own in shared memory, and their sums are added in order. Prefetch begins before
 * earlier kernels end, except for experts. Neither the number of rows nor how many outputs a block has
 * changes a bit.
 */
#include "backends/cuda/device/tiles.cuh"
#include "backends/cuda/gemm/dense_matrices.cuh"
#include "backends/cuda/gemm/row_lists.cuh"

using namespace gb_cuda;

enum {
    BAND = 16, /* outputs; a warp has one or two bands */
    PIECE = 8, /* columns of 16 bytes of weights */
    UNITS = 2, /* of 32 columns, of a stage: of each a lane has a piece */
    STAGE_PIECES = UNITS * UNIT / PIECE,
    AHEAD = 2, /* stages in flight */
    TILE = 8,  /* rows of x that are multiplied at a time */
    MOST_TILES = 2,
    TERMS = 3,
    FEW_WAYS = 4, /* warps among which a sum is divided */
    MANY_WAYS = 8,
    MOST_WARPS = 16 /* of a multiprocessor; half as many again of one band */
};

struct row_products {
    dense_matrices of;
    const int32_t *expert; /* of each row, whose part of the only matrix it is multiplied by; or NULL */
    uint32_t x_reuse;      /* row i of y is computed from row i / x_reuse of x */
};

/* ---- A warp's operands --------------------------------------------------------------------------------- */

/* Where a block's rows are. */
struct block_rows {
    const float *x;
    uint32_t first, count; /* of y */
    size_t weight_row;     /* the first row of the expert's matrix */
};

template <uint32_t TILES>
__device__ static block_rows rows_of_block(const row_products &p, const dense_matrix &m) {
    if (p.expert)
        return block_rows{p.of.x + (size_t)(blockIdx.y / p.x_reuse) * p.of.columns, blockIdx.y, 1,
                          (size_t)p.expert[blockIdx.y] * m.outputs};
    const uint32_t first = blockIdx.y * (TILES * TILE), left = p.of.rows - first;
    return block_rows{p.of.x + (size_t)first * p.of.columns, first, left < TILES * TILE ? left : TILES * TILE,
                      0};
}

/* A warp's outputs; `count` of them are there. */
struct weight_rows {
    const uint4 *data;
    uint32_t count, pieces; /* pieces of a row */
};

template <uint32_t BANDS>
__device__ static weight_rows find_weights(const row_products &p, const dense_matrix &m, uint32_t output,
                                           size_t first_row) {
    const uint32_t pieces = p.of.columns / PIECE, left = output < m.outputs ? m.outputs - output : 0;
    return weight_rows{static_cast<const uint4 *>(m.weight) + (first_row + (left > 0 ? output : 0)) * pieces,
                       left < BANDS * BAND ? left : BANDS * BAND, pieces};
}

/* A lane's weights of a unit: of outputs lane / 4 and every eighth after it a piece. */
template <uint32_t BANDS>
struct unit_weights {
    uint4 of[2 * BANDS];
};

/* A warp's stages, and in the end its sums. */
template <uint32_t BANDS>
union warp_stages {
    uint4 weights[AHEAD][BANDS * BAND][STAGE_PIECES];
    float4 sums[MOST_TILES][BANDS][WARP];

    /* Where a piece of an output is: two outputs' pieces of a unit are in different banks. */
    __device__ static uint32_t place_of(uint32_t output, uint32_t piece) {
        return piece ^ output % 2 * 4;
    }

    /* Zeros of what is not there. */
    __device__ void start(uint32_t buffer, const weight_rows &rows, uint32_t stage) {
        constexpr uint32_t AT_ONCE = WARP / STAGE_PIECES;
        const uint32_t lane = threadIdx.x % WARP, piece = lane % STAGE_PIECES,
                       at = stage * STAGE_PIECES + piece;
#pragma unroll
        for (uint32_t i = 0; i < BANDS * BAND / AT_ONCE; i++) {
            const uint32_t output = lane / STAGE_PIECES + i * AT_ONCE;
            const bool is_there = output < rows.count && at < rows.pieces;
            copy_16(&weights[buffer][output][place_of(output, piece)],
                    rows.data + (is_there ? (size_t)output * rows.pieces + at : 0), is_there);
        }
        commit_copies();
    }

    /* Until the warp's copies of the oldest stage are there. */
    __device__ void wait() const {
        wait_for_copies<AHEAD - 1>();
        __syncwarp();
    }

    __device__ unit_weights<BANDS> take(uint32_t buffer, uint32_t unit) const {
        const uint32_t lane = threadIdx.x % WARP;
        unit_weights<BANDS> weights_of_unit;
#pragma unroll
        for (uint32_t i = 0; i < 2 * BANDS; i++) {
            const uint32_t output = lane / 4 + i * 8;
            weights_of_unit.of[i] = weights[buffer][output][place_of(output, unit * 4 + lane % 4)];
        }
        return weights_of_unit;
    }
};

/* The same columns of rows of x, one of each tile. */
template <uint32_t TILES>
struct unit_inputs {
    float4 of[TILES][2];

    /* Zeros of what is not there. */
    __device__ void load(const block_rows &rows, uint32_t columns, uint32_t unit) {
        const uint32_t column = unit * UNIT + threadIdx.x % 4 * PIECE;
#pragma unroll
        for (uint32_t tile = 0; tile < TILES; tile++) {
            const uint32_t row = tile * TILE + threadIdx.x % WARP / 4;
            const bool is_there = row < rows.count && column < columns;
            const auto *x = reinterpret_cast<const float4 *>(rows.x + (size_t)row * columns + column);
#pragma unroll
            for (uint32_t i = 0; i < 2; i++)
                of[tile][i] = is_there ? x[i] : float4{0, 0, 0, 0};
        }
    }
};

/* sums += weights * inputs; the inputs are used up. */
template <uint32_t TILES, uint32_t BANDS>
__device__ static void multiply_unit(const unit_weights<BANDS> &weights, unit_inputs<TILES> &inputs,
                                     float sums[TILES][BANDS][4]) {
    const uint4 *w = weights.of;
#pragma unroll
    for (int term = 0; term < TERMS; term++)
#pragma unroll
        for (uint32_t half = 0; half < 2; half++)
#pragma unroll
            for (uint32_t tile = 0; tile < TILES; tile++) {
                float4 &x = inputs.of[tile][half];
                const uint32_t of_x[2] = {take_bf16(&x.x, &x.y), take_bf16(&x.z, &x.w)};
#pragma unroll
                for (uint32_t band = 0; band < BANDS; band++) {
                    const uint4 a = w[2 * band], b = w[2 * band + 1];
                    const uint32_t of_w[4] = {half ? a.z : a.x, half ? b.z : b.x, half ? a.w : a.y,
                                              half ? b.w : b.y};
                    multiply_add(sums[tile][band], of_w, of_x[0], of_x[1]);
                }
            }
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

/* The sums of a group's warps, added in order, to y: of outputs from `output` on. Each warp has some of them.
 */
template <uint32_t TILES, uint32_t BANDS, uint32_t WAYS>
__device__ static void store_sums(const dense_matrix &m, const block_rows &rows, uint32_t output,
                                  uint32_t way, const warp_stages<BANDS> *warps) {
    const uint32_t lane = threadIdx.x % WARP;
    for (uint32_t part = way; part < TILES * BANDS; part += WAYS) {
        const uint32_t tile = part / BANDS, band = part % BANDS;
        float4 sum = warps[0].sums[tile][band][lane];
#pragma unroll
        for (uint32_t i = 1; i < WAYS; i++) {
            const float4 other = warps[i].sums[tile][band][lane];
            sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
        }
        const float of[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t row = tile * TILE + lane % 4 * 2 + i % 2,
                           at = output + band * BAND + lane / 4 + i / 2 * 8;
            if (row < rows.count && at < m.outputs)
                m.y[(size_t)(rows.first + row) * m.outputs + at] = of[i];
        }
    }
}

constexpr uint32_t most_warps(uint32_t tiles, uint32_t bands) {
    return tiles == 1 && bands == 1 ? MOST_WARPS * 3 / 2 : (uint32_t)MOST_WARPS;
}

/* TILES of TILE rows, GROUPS of BANDS of outputs, each of which WAYS warps have. */
template <uint32_t TILES, uint32_t BANDS, uint32_t WAYS, uint32_t GROUPS>
static __global__ void __launch_bounds__(GROUPS *WAYS *WARP, most_warps(TILES, BANDS) / (GROUPS * WAYS))
    run_gemv_bf16(GB_GRID_CONSTANT row_products p) {
    GB_DYNAMIC_SHARED(warp_stages<BANDS>, of_warps);
    const uint32_t lane = threadIdx.x % WARP, way = threadIdx.x / WARP % WAYS,
                   group = threadIdx.x / WARP / WAYS;
    warp_stages<BANDS> &stages = of_warps[threadIdx.x / WARP];
    uint32_t output;
    const dense_matrix &m = matrix_of_block(p.of, GROUPS * BANDS * BAND, &output);
    output += group * BANDS * BAND;
    if (p.expert)
        wait_for_earlier();
    const block_rows rows = rows_of_block<TILES>(p, m);
    const weight_rows from = find_weights<BANDS>(p, m, output, rows.weight_row);
    for (uint32_t i = 0; i < AHEAD; i++)
        stages.start(i, from, way + i * WAYS);
    if (!p.expert)
        wait_for_earlier();
    unit_inputs<TILES> next;
    next.load(rows, p.of.columns, way * UNITS);
    float sums[TILES][BANDS][4] = {};
#pragma unroll 1
    for (uint32_t stage = way, buffer = 0; stage * STAGE_PIECES < from.pieces; stage += WAYS) {
        stages.wait();
#pragma unroll
        for (uint32_t unit = 0; unit < UNITS; unit++) {
            unit_inputs<TILES> inputs = next;
            next.load(rows, p.of.columns,
                      (unit + 1 < UNITS ? stage : stage + WAYS) * UNITS + (unit + 1) % UNITS);
            multiply_unit<TILES, BANDS>(stages.take(buffer, unit), inputs, sums);
        }
        __syncwarp(); /* the buffer has been read */
        stages.start(buffer, from, stage + AHEAD * WAYS);
        buffer = buffer + 1 == AHEAD ? 0 : buffer + 1;
    }
    wait_for_copies<0>();
    __syncwarp();
#pragma unroll
    for (uint32_t tile = 0; tile < TILES; tile++)
#pragma unroll
        for (uint32_t band = 0; band < BANDS; band++) {
            const float *sum = sums[tile][band];
            stages.sums[tile][band][lane] = float4{sum[0], sum[1], sum[2], sum[3]};
        }
    __syncthreads();
    store_sums<TILES, BANDS, WAYS>(m, rows, output, way, of_warps + group * WAYS);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Among how many warps a sum is divided, which only its matrix says: more where there are few outputs, or
 * many columns. */
static uint32_t ways_of(size_t outputs, size_t columns) {
    enum { MANY_OUTPUTS = 4096, SOME_COLUMNS = 2048, MANY_COLUMNS = 8192 };
    const bool are_many = columns >= MANY_COLUMNS || (columns >= SOME_COLUMNS && outputs < MANY_OUTPUTS);
    return are_many ? MANY_WAYS : FEW_WAYS;
}

static uint32_t ways_of_call(const gb_cuda_call *call) {
    return ways_of(gb_cuda_all_outputs(call->operands[1]), call->operands[1]->dims[1]);
}

/* The outputs of a block: bands of a warp, and groups of warps. */
struct block_outputs {
    uint32_t bands, groups;

    uint32_t count() const {
        return bands * groups * BAND;
    }
};

/* So few that there are blocks for all of a large device's multiprocessors; else more where several rows are
 * read for them and the of_warps are no more than every device has room for. */
static block_outputs outputs_of_block(size_t outputs, size_t rows, uint32_t ways) {
    if (outputs < (size_t)(2 * 2 * BAND) * gb_cuda_find_facts()->multiprocessors)
        return block_outputs{1, 1};
    return block_outputs{2, rows > 2 && ways == FEW_WAYS ? 2u : 1u};
}

template <uint32_t TILES, uint32_t BANDS, uint32_t WAYS, uint32_t GROUPS>
static void launch(const row_products &p, dim3 grid, gb_cuda_launch_list *launches) {
    const auto kernel = run_gemv_bf16<TILES, BANDS, WAYS, GROUPS>;
    add_launch(launches, "gemv_bf16", kernel, grid, GROUPS * WAYS * WARP,
               GROUPS * WAYS * sizeof(warp_stages<BANDS>), p);
}

template <uint32_t TILES, uint32_t WAYS>
static void launch_outputs(const row_products &p, block_outputs outputs, dim3 grid,
                           gb_cuda_launch_list *launches) {
    if (outputs.bands == 1)
        launch<TILES, 1, WAYS, 1>(p, grid, launches);
    else if (WAYS == FEW_WAYS && outputs.groups == 2)
        launch<TILES, 2, FEW_WAYS, 2>(p, grid, launches);
    else
        launch<TILES, 2, WAYS, 1>(p, grid, launches);
}

template <uint32_t TILES>
static void launch_ways(const row_products &p, uint32_t ways, block_outputs outputs, dim3 grid,
                        gb_cuda_launch_list *launches) {
    if (ways == FEW_WAYS)
        launch_outputs<TILES, FEW_WAYS>(p, outputs, grid, launches);
    else
        launch_outputs<TILES, MANY_WAYS>(p, outputs, grid, launches);
}

bool gb_cuda_supports_gemv_bf16(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return !gb_cuda_is_prompt(call) && weight->dtype == GB_BF16 && weight->rank == 2 &&
           weight->dims[1] % PIECE == 0 && !gb_cuda_supports_gemv_small(call);
}

bool gb_cuda_gemv_bf16_joins(const gb_cuda_call *call, const gb_cuda_call *other) {
    return ways_of_call(call) == ways_of_call(other);
}

void gb_cuda_gemv_bf16(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    row_products p = {};
    size_t all = 0;
    for (uint32_t i = 0; i < problem->count; i++)
        all += problem->parts[i]->operands[1]->dims[0];
    const uint32_t ways = ways_of_call(call);
    const block_outputs outputs = outputs_of_block(all, call->operands[0]->dims[0], ways);
    const uint32_t blocks = list_matrices(problem->parts, problem->count, outputs.count(), &p.of);
    const dim3 grid(blocks, blocks_for(p.of.rows, MOST_TILES * TILE));
    if (p.of.rows <= TILE)
        launch_ways<1>(p, ways, outputs, grid, call->launches);
    else
        launch_ways<MOST_TILES>(p, ways, outputs, grid, call->launches);
}

bool gb_cuda_supports_pairs_bf16(const gb_cuda_tensor *weight) {
    return weight->dtype == GB_BF16 && weight->dims[2] % PIECE == 0;
}

void gb_cuda_gemv_bf16_pairs(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                             const row_lists &lists) {
    row_products p = {};
    const uint32_t ways = ways_of(gb_cuda_all_outputs(weight), weight->dims[2]);
    const block_outputs outputs = outputs_of_block(lists.outputs * lists.rows, 1, ways);
    const uint32_t blocks = blocks_for(lists.outputs, outputs.count());
    p.of.of[0] = dense_matrix{weight->data, weight->dtype, data_of<float>(call->results[0]),
                              (uint32_t)lists.outputs, blocks};
    p.of.x = data_of<const float>(x);
    p.of.rows = (uint32_t)lists.rows;
    p.of.columns = (uint32_t)weight->dims[2];
    p.expert = lists.expert;
    p.x_reuse = (uint32_t)lists.x_reuse;
    launch_ways<1>(p, ways, outputs, dim3(blocks, (unsigned)lists.rows), call->launches);
}
