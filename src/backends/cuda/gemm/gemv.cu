/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the GEMV of packed matrices (gemm/gemv_rows.cuh, gemm/gemv_one_row.cuh): for decode, with any
 * number of rows in tiles of 16, and for chosen experts.
 */
#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/gemv_launch.cuh"
#include "backends/cuda/gemm/gemv_one_row.cuh"
#include "backends/cuda/gemm/gemv_rows.cuh"
#include "backends/cuda/gemm/row_lists.cuh"

using namespace gb_cuda;

enum { LEAST_STAGES = 2 };

/* Leaves the first rows of a product's inputs and outputs out. */
static void skip_rows(gemv_products &p, size_t rows, size_t inputs) {
    const size_t units = p.x.units;
    p.x.values += rows * units * (p.x.group ? UNIT_WORDS / 2 : UNIT_WORDS);
    p.x.sums += p.x.group ? rows * (inputs / p.x.group) * 2 : rows * units * 2;
    for (uint32_t i = 0; i < p.count; i++)
        p.of[i].y += rows * p.of[i].outputs;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <typename Shape>
static void launch_tiles(gb_cuda_launch_list *launches, const gemv_products &p, dim3 grid) {
    if constexpr (Shape::IN_BYTES)
        if (is_one_row<Shape>(p.cut)) {
            const bool is_narrow = p.cut.atoms * Shape::ATOM_COLUMNS <= NARROW_COLUMNS;
            const auto one =
                is_narrow ? run_gemv_row<Shape, NARROW_ROW_WARPS> : run_gemv_row<Shape, WIDE_ROW_WARPS>;
            const unsigned threads = is_narrow ? gemv_one_row<Shape, NARROW_ROW_WARPS>::THREADS
                                               : gemv_one_row<Shape, WIDE_ROW_WARPS>::THREADS;
            add_launch(launches, "gemv_row", one, grid, threads, p.memory.size, p);
            return;
        }
    const bool has_two = p.tile_rows > GEMV_COLUMNS;
    const auto kernel = has_two ? run_gemv<Shape, 2> : run_gemv<Shape, 1>;
    const unsigned threads = has_two ? gemv_rows<Shape, 2>::THREADS : gemv_rows<Shape, 1>::THREADS;
    add_launch(launches, "gemv", kernel, grid, threads, p.memory.size, p);
}

/* As many rows at a time as leave room for the pipeline. */
template <typename Shape>
static void launch_rows(gb_cuda_launch_list *launches, gemv_products p, size_t inputs) {
    const uint32_t rows = p.rows;
    p.cut = cut_of<Shape>(inputs, p.expert || rows == 1);
    p.is_read_once = !p.expert && rows <= 2 * GEMV_COLUMNS;
    for (uint32_t first = 0; first < rows; first += p.rows) {
        gemv_launch launch;
        for (uint32_t most = p.expert ? 1 : 2 * GEMV_COLUMNS;; most /= 2) {
            p.tile_rows = rows - first < most ? rows - first : most;
            p.rows = p.expert ? rows : p.tile_rows;
            launch = best_launch<Shape>(p, p.cut, p.tile_rows);
            if (launch.has_stages(LEAST_STAGES) || most == 1)
                break;
        }
        p.memory = launch.memory;
        p.begins_slowly = p.tile_rows == 1 && begins_slowly(launch);
        launch_tiles<Shape>(launches, p, launch.grid);
        skip_rows(p, p.rows, inputs);
    }
}

/* Codes without groups have 8 bits, and are multiplied by bfloat16 inputs. */
static void launch(gb_cuda_launch_list *launches, const gemv_products &p, const gb_cuda_tensor *weight) {
    const gb_format &format = weight->format;
    const size_t inputs = weight->dims[weight->rank - 1];
    dispatch(
        [&](auto in_bytes, auto bits, auto group, auto is_bf16, auto has_bias) {
            typedef gemv_shape<in_bytes && group != 0, group == 0 ? 8 : int(bits), group, is_bf16 != 0,
                               has_bias != 0>
                shape;
            launch_rows<shape>(launches, p, inputs);
        },
        one_of<0, 1>(weight->int8_input), one_of<4, 8>(format.bits), one_of<0, 32, 64, 128>(format.group),
        one_of<0, 1>(format.scale == GB_BF16), one_of<0, 1>(format.has_bias));
}

/* ---- What others call --------------------------------------------------------------------------------- */

void gb_cuda_gemv_pairs(const gb_cuda_call *call, const row_lists &lists) {
    const gb_cuda_tensor *weight = call->operands[1];
    gemv_products p = products_of(weight);
    add_matrix(p, weight, data_of<float>(call->results[0]));
    p.x = gb_cuda_prepare(call);
    p.rows = (uint32_t)lists.rows;
    p.tile_rows = 1;
    p.expert = lists.expert;
    p.x_reuse = (uint32_t)lists.x_reuse;
    launch(call->launches, p, weight);
}

bool gb_cuda_gemv_joins(const gb_cuda_call *call, const gb_cuda_call *other) {
    const gb_cuda_tensor *a = call->operands[1], *b = other->operands[1];
    return !gb_cuda_is_prompt(call) && !gb_cuda_is_prompt(other) && call->operands[0] == other->operands[0] &&
           a->is_packed && b->is_packed && gb_format_equal(&a->format, &b->format) &&
           a->int8_input == b->int8_input && a->rank == 2 && b->rank == 2 && a->dims[1] == b->dims[1] &&
           slices_of(a->dims[1]) == 1;
}

void gb_cuda_gemv(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *x = call->operands[0], *weight = call->operands[1];
    gemv_products p = products_of(weight);
    for (uint32_t i = 0; i < problem->count; i++)
        add_matrix(p, problem->parts[i]->operands[1], data_of<float>(problem->parts[i]->results[0]));
    p.x = gb_cuda_prepare(call);
    p.rows = p.tile_rows = (uint32_t)x->dims[0];
    p.partial = reinterpret_cast<float *>(call->scratch->bytes);
    p.arrivals = call->scratch->arrivals;
    launch(call->launches, p, weight);
}

uint64_t gb_cuda_gemv_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *weight = problem->parts[0]->operands[1];
    if (!weight->is_packed)
        return 0;
    const uint32_t slices = slices_of(weight->dims[1]);
    const uint64_t outputs = (uint64_t)blocks_for(weight->dims[0], GEMV_BLOCK_ROWS) * GEMV_BLOCK_ROWS;
    return slices == 1 ? 0 : (uint64_t)slices * 2 * GEMV_COLUMNS * outputs * sizeof(float);
}
