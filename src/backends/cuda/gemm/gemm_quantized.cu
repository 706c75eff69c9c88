/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/gemm_quantized.cuh"
#include "backends/cuda/gemm/row_lists.cuh"

using namespace gb_cuda;

enum { FEW_ROWS = 16, MANY_ROWS = GB_CUDA_LISTED_TILE_ROWS };

/* The row of a weight with `end` rows, or its last one: what is computed of rows past the end is not stored.
 */
__device__ static size_t within(size_t row, size_t end) {
    return row < end ? row : end - 1;
}

/* The prepared rows of a tile's columns: those that its lane has as b and as c. */
template <typename Tile>
__device__ static void set_columns(Tile &tile, int number, const product &p, const row_lists &lists,
                                   const row_tile &rows, int32_t first) {
    const int32_t lane = (int32_t)(threadIdx.x % WARP), b = first + lane / 4, c = first + lane % 4 * 2;
    tile.set_column(number, p, b < rows.end, b < rows.end ? listed_row(lists, b) / lists.x_reuse : 0);
    for (int i = 0; i < 2; i++)
        tile.set_sum(number, i, p, c + i < rows.end,
                     c + i < rows.end ? listed_row(lists, c + i) / lists.x_reuse : 0);
}

/* ---- Few rows or outputs: 16 outputs a block, each warp has one part of the sums ----------------------- */

template <int BITS, int UNITS, int COLUMN_TILES>
static __global__ void __launch_bounds__(PARTS *WARP)
    run_gemv_quantized(product p, row_lists lists, float *__restrict__ y) {
    wait_for_earlier();
    __shared__ float partial[PARTS][COLUMN_TILES][4][WARP];
    const unsigned lane = threadIdx.x % WARP, part = threadIdx.x / WARP;
    const row_tile rows = tile_of(lists, blockIdx.y, lists.expert ? 1 : COLUMN_TILES * TILE_COLUMNS);
    const size_t first = (size_t)blockIdx.x * TILE_ROWS, base = (size_t)rows.expert * lists.outputs;
    product_tile<BITS, 1, COLUMN_TILES> tile;
    for (int which = 0; which < 2; which++)
        tile.set_row(0, which, p, base + within(first + lane / 4 + 8 * which, lists.outputs));
    for (int c = 0; c < COLUMN_TILES; c++)
        set_columns(tile, c, p, lists, rows, rows.first + c * TILE_COLUMNS);
    float sums[1][COLUMN_TILES][4] = {};
    tile.template add_groups<UNITS>(p, part_begin(p, part), part_begin(p, part + 1), sums);
    for (int c = 0; c < COLUMN_TILES; c++)
        for (int i = 0; i < 4; i++)
            partial[part][c][i][lane] = sums[0][c][i];
    __syncthreads();
    for (unsigned e = threadIdx.x; e < COLUMN_TILES * 4 * WARP; e += PARTS * WARP) {
        const unsigned of_lane = e % WARP, i = e / WARP % 4, c = e / (4 * WARP);
        const size_t row = first + of_lane / 4 + i / 2 * 8;
        const int32_t column = rows.first + (int32_t)(c * TILE_COLUMNS + of_lane % 4 * 2 + i % 2);
        float sum = 0;
        for (unsigned q = 0; q < PARTS; q++)
            sum += partial[q][c][i][of_lane];
        if (row < lists.outputs && column < rows.end)
            y[listed_row(lists, column) * lists.outputs + row] = sum;
    }
}

/* ---- Many rows: a block has 128 outputs of 64 rows, a warp 32 outputs of 32 rows ----------------------- */

enum { ROW_TILES = 2, COLUMN_TILES = 4, WARPS_DOWN = 4, WARPS_ACROSS = 2 };
enum { BLOCK_OUTPUTS = WARPS_DOWN * ROW_TILES * TILE_ROWS };

template <int BITS, int UNITS>
static __global__ void __launch_bounds__(WARPS_DOWN *WARPS_ACROSS *WARP)
    run_gemm_quantized(product p, row_lists lists, float *__restrict__ y) {
    wait_for_earlier();
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const row_tile rows = tile_of(lists, blockIdx.y, MANY_ROWS);
    const size_t base = (size_t)rows.expert * lists.outputs;
    const size_t first = (size_t)blockIdx.x * BLOCK_OUTPUTS + warp / WARPS_ACROSS * ROW_TILES * TILE_ROWS;
    const int32_t first_column = rows.first + (int32_t)(warp % WARPS_ACROSS * COLUMN_TILES * TILE_COLUMNS);
    if (first_column >= rows.end || first >= lists.outputs)
        return;
    product_tile<BITS, ROW_TILES, COLUMN_TILES> tile;
    for (int r = 0; r < ROW_TILES; r++)
        for (int which = 0; which < 2; which++)
            tile.set_row(r, which, p,
                         base + within(first + r * TILE_ROWS + lane / 4 + 8 * which, lists.outputs));
    for (int c = 0; c < COLUMN_TILES; c++)
        set_columns(tile, c, p, lists, rows, first_column + c * TILE_COLUMNS);
    float total[ROW_TILES][COLUMN_TILES][4] = {};
    for (unsigned part = 0; part < PARTS; part++) {
        float sums[ROW_TILES][COLUMN_TILES][4] = {};
        tile.template add_groups<UNITS>(p, part_begin(p, part), part_begin(p, part + 1), sums);
        for (int r = 0; r < ROW_TILES; r++)
            for (int c = 0; c < COLUMN_TILES; c++)
                for (int i = 0; i < 4; i++)
                    total[r][c][i] += sums[r][c][i];
    }
    for (int r = 0; r < ROW_TILES; r++)
        for (int c = 0; c < COLUMN_TILES; c++)
            for (int i = 0; i < 4; i++) {
                const size_t row = first + r * TILE_ROWS + lane / 4 + i / 2 * 8;
                const int32_t column = first_column + c * TILE_COLUMNS + (int32_t)(lane % 4 * 2 + i % 2);
                if (row < lists.outputs && column < rows.end)
                    y[listed_row(lists, column) * lists.outputs + row] = total[r][c][i];
            }
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <int BITS, int UNITS>
static void add_few(const gb_cuda_call *call, const product &p, const row_lists &lists) {
    const bool has_one_tile = lists.expert || lists.rows <= TILE_COLUMNS;
    const auto kernel = has_one_tile ? run_gemv_quantized<BITS, UNITS, 1>
                                     : run_gemv_quantized<BITS, UNITS, FEW_ROWS / TILE_COLUMNS>;
    const dim3 grid(blocks_for(lists.outputs, TILE_ROWS),
                    lists.expert ? (unsigned)lists.rows : blocks_for(lists.rows, FEW_ROWS));
    add_launch(call->launches, "gemv_quantized", kernel, grid, PARTS * WARP, 0, p, lists,
               data_of<float>(call->results[0]));
}

template <int BITS, int UNITS>
static void add_many(const gb_cuda_call *call, const product &p, const row_lists &lists) {
    const auto kernel = run_gemm_quantized<BITS, UNITS>;
    const dim3 grid(blocks_for(lists.outputs, BLOCK_OUTPUTS),
                    lists.tiles ? (unsigned)lists.tile_count : blocks_for(lists.rows, MANY_ROWS));
    add_launch(call->launches, "gemm_quantized", kernel, grid, WARPS_DOWN * WARPS_ACROSS * WARP, 0, p, lists,
               data_of<float>(call->results[0]));
}

/* Calls `add` with the bits of a code, with a book BY_BOOK more, and the units of a group, 0: as p says. */
template <typename Add>
static void with_format(const gb_cuda_tensor *weight, const product &p, const Add &add) {
    const gb_format &format = weight->format;
    const uint32_t kind = format.bits + (format.book == GB_BOOK_NONE ? 0 : BY_BOOK);
    const uint32_t known = kind == 4 && p.group_units <= 2 ? p.group_units : 0;
    dispatch(
        [&](auto bits, auto units) {
            constexpr int UNITS = bits == 4 ? int(units) : 0;
            add(bits, fixed<UNITS>());
        },
        one_of<2, 3, 4, 5, 6, 8, 19, 20>(kind), one_of<0, 1, 2>(known));
}

void gb_cuda_quantized_few(const gb_cuda_call *call, const row_lists &lists) {
    const product p = product_of(call->operands[1], gb_cuda_prepare(call));
    with_format(call->operands[1], p, [&](auto bits, auto units) {
        add_few<decltype(bits)::value, decltype(units)::value>(call, p, lists);
    });
}

void gb_cuda_quantized_many(const gb_cuda_call *call, const row_lists &lists) {
    const product p = product_of(call->operands[1], gb_cuda_prepare(call));
    with_format(call->operands[1], p, [&](auto bits, auto units) {
        add_many<decltype(bits)::value, decltype(units)::value>(call, p, lists);
    });
}

void gb_cuda_gemv_quantized(const gb_cuda_call *call) {
    gb_cuda_quantized_few(call, all_rows(call));
}

void gb_cuda_gemm_quantized(const gb_cuda_call *call) {
    gb_cuda_quantized_many(call, all_rows(call));
}
