/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with packed weights of 4 and 8 bits, on Hopper (gemm/wgmma_quantized.cuh).
 */
#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/gemm/wgmma_quantized.cuh"

using namespace gb_cuda;

/* A tile is of up to 256 rows; one of fewer is multiplied as the next width that holds it. */
template <int BITS, int GROUP_UNITS, gb_dtype SCALE>
struct gemm_wgmma {
    typedef fragment_matrix matrix;
    typedef tile_widths<64, 128, 192, 256> widths;
    template <int COLUMNS>
    using shape = stage_shape<COLUMNS, GROUP_UNITS, BITS>;

    __device__ static fragment_tile tile_of(const wgmma_tile &tile, const matrix &weight, int32_t expert) {
        const uint32_t first = blockIdx.y * TILE_FRAGMENTS;
        return {tile, weight, (size_t)expert * weight.blocks + first,
                at_most(weight.blocks - first, TILE_FRAGMENTS)};
    }
    template <int COLUMNS>
    __device__ static void copy(const fragment_tile &tile) {
        copy_stages<shape<COLUMNS>, fragment_copier<shape<COLUMNS>>>(tile);
    }
    template <int COLUMNS>
    __device__ static void multiply(const fragment_tile &tile, const row_lists &lists, float *y) {
        wgmma_sums<shape<COLUMNS>, SCALE> work;
        multiply_stages<shape<COLUMNS>, SCALE>(tile, work);
        store_sums<COLUMNS>(tile, lists, (size_t)blockIdx.y * CONSUMED_OUTPUTS, work.sums, y);
    }
};

/* ---- Choosing the kernel ------------------------------------------------------------------------------- */

uint32_t gb_cuda_wgmma_blocks(void) {
#if defined(__CUDACC__)
    /* Where it was compiled for other chips the kernel is empty and has no shared memory. */
    cudaFuncAttributes attributes = {};
    const gb_cuda_facts *facts = gb_cuda_find_facts();
    const bool is_there =
        facts->is_there && facts->major == 9 &&
        cudaFuncGetAttributes(&attributes, run_wgmma<gemm_wgmma<4, 2, GB_BF16>>) == cudaSuccess &&
        attributes.sharedSizeBytes > 0;
    return is_there ? facts->multiprocessors : 0;
#else
    return 4;
#endif
}

/* Whether a weight is packed in fragments, has scales of groups, and its columns are whole pairs of units. */
static bool is_of_fragments(const gb_cuda_tensor *weight) {
    return weight->is_packed && weight->format.kind == GB_FORMAT_ONE_LEVEL && weight->format.group > 0 &&
           weight->dims[weight->rank - 1] % PAIR_COLUMNS == 0;
}

bool gb_cuda_supports_wgmma(const gb_cuda_call *call, const gb_cuda_tensor *weight) {
    return gb_cuda_is_prompt(call) && call->scratch->wgmma_blocks > 0 && weight &&
           (is_of_fragments(weight) || gb_cuda_is_large_bf16(weight));
}

size_t gb_cuda_wgmma_tile_rows(const gb_cuda_tensor *weight) {
    return weight->dtype == GB_BF16 ? (size_t)GB_CUDA_BF16_TILE_ROWS : (size_t)GB_CUDA_FRAGMENT_TILE_ROWS;
}

static fragment_matrix fragments_of(const gb_cuda_tensor *weight) {
    const quantized_matrix m = matrix_of(weight);
    const size_t outputs = weight->dims[weight->rank - 2], inputs = weight->dims[weight->rank - 1];
    const uint32_t center = (uint32_t)gb_format_center(&weight->format);
    fragment_matrix matrix = {};
    matrix.codes = m.data + m.planes.codes.offset;
    matrix.scales = m.data + m.planes.scales.offset;
    matrix.biases = weight->format.has_bias ? m.data + m.planes.biases.offset : nullptr;
    matrix.blocks = blocks_for(outputs, FRAGMENT_ROWS);
    matrix.pairs = (uint32_t)(inputs / PAIR_COLUMNS);
    matrix.minus_center =
        weight->format.bits == 4 ? code_pairs<4>::minus_center(center) : code_pairs<8>::minus_center(center);
    return matrix;
}

/* How many rows a tile gets where the lists do not say: as many as let all blocks end soonest. Every width
 * gives the same bits. */
static unsigned choose_tile_rows(const gb_cuda_call *call, size_t rows, size_t output_tiles) {
    /* what a tile of that many rows takes, measured on an H200 */
    static const struct { unsigned rows, time; } widths[] = {{256, 100}, {192, 78}, {128, 60}, {64, 50}};
    unsigned best = 0;
    size_t best_time = SIZE_MAX;
    for (const auto &width : widths) {
        const size_t tiles = output_tiles * blocks_for(rows, width.rows);
        const size_t time = blocks_for(tiles, call->scratch->wgmma_blocks) * (size_t)width.time;
        if (time < best_time) {
            best_time = time;
            best = width.rows;
        }
    }
    return best;
}

template <int BITS, int GROUP_UNITS, gb_dtype SCALE>
static void launch(const gb_cuda_call *call, const fragment_matrix &weight, const prepared_rows &x,
                   const row_lists &lists) {
    const unsigned output_tiles = blocks_for(weight.blocks, TILE_FRAGMENTS);
    const unsigned tile_rows = choose_tile_rows(call, lists.rows, output_tiles);
    add_wgmma<gemm_wgmma<BITS, GROUP_UNITS, SCALE>>(call, "gemm_wgmma", output_tiles, weight, x, lists,
                                                    tile_rows);
}

void gb_cuda_wgmma_product(const gb_cuda_call *call, const prepared_rows &x, const gb_cuda_tensor *weight,
                           const row_lists &lists) {
    if (weight->dtype == GB_BF16)
        return gb_cuda_wgmma_product_bf16(call, x, weight, lists);
    const fragment_matrix fragments = fragments_of(weight);
    dispatch(
        [&](auto bits, auto group, auto scale) {
            launch<bits, group / 32, static_cast<gb_dtype>(int(scale))>(call, fragments, x, lists);
        },
        one_of<4, 8>(weight->format.bits), one_of<32, 64, 128>(weight->format.group),
        one_of<GB_BF16, GB_F16>(weight->format.scale));
}

void gb_cuda_gemm_wgmma(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    gb_cuda_wgmma_product(call, gb_cuda_prepare(call), call->operands[1], all_rows(call));
}
