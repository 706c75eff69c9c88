/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows rounded to 8 bits (gemm/int8/rows.cuh) with the bits of the CPU's kernels. A warp has 256 columns at a
 * time, a lane eight neighbours, so that a block of the rotation lies in one warp. What a lane has of a row
 * stays in registers until the row's largest number is known; of rows longer than that it is read again.
 */
#include "backends/cuda/gemm/int8/round_parts.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

enum { KEPT = 4 /* times a lane's columns */ };

struct rounding {
    const float *x; /* [rows, columns] */
    size_t columns;
    row_rounding how;
};

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* The lane's columns from `first` on; zeros past the row's end. */
__device__ static void load_columns(const rounding &r, size_t row, size_t first, float v[LANE_COLUMNS]) {
    const float *x = r.x + row * r.columns + first;
    if (r.columns % 4 == 0 && first + LANE_COLUMNS <= r.columns) {
        const float4 low = reinterpret_cast<const float4 *>(x)[0],
                     high = reinterpret_cast<const float4 *>(x)[1];
        v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
        v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        v[i] = first + i < r.columns ? x[i] : 0.0f;
}

/* ---- Rounding ------------------------------------------------------------------------------------------ */

/* A block of threads has a row, or the blocks of a cluster. Warps whose columns are past its end have zeros
 * there. */
template <int SHARES>
static __global__ void __launch_bounds__(ROUND_WARPS *WARP) run_round_rows(rounding r) {
    let_next_begin();
    arrive_in_cluster();
    wait_for_earlier();
    const size_t row = blockIdx.x / SHARES;
    const size_t all = (r.columns + INT8_BLOCK - 1) / INT8_BLOCK * INT8_BLOCK;
    const size_t first = part_column<LANE_COLUMNS, SHARES>(0), step = SHARES * blockDim.x * LANE_COLUMNS;
    const size_t of_warp = first - threadIdx.x % WARP * LANE_COLUMNS; /* its first column */
    uint32_t magnitude = 0;
    float kept[KEPT][LANE_COLUMNS] = {};
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        if (of_warp + i * step < all)
            load_columns(r, row, first + i * step, kept[i]);
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++) {
        if (of_warp + i * step >= all)
            continue;
        hadamard_of_warp<LANE_COLUMNS>(kept[i], r.how.rotation);
        magnitude = larger<LANE_COLUMNS>(magnitude, kept[i]);
    }
    float again[LANE_COLUMNS];
    for (size_t begin = KEPT * step; begin < all; begin += step) {
        load_columns(r, row, first + begin, again);
        hadamard_of_warp<LANE_COLUMNS>(again, r.how.rotation);
        magnitude = larger<LANE_COLUMNS>(magnitude, again);
    }
    const row_divisor by(largest_of_row<SHARES>(magnitude));
    int32_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < KEPT; i++)
        if (first + i * step < all)
            sum += store_codes<LANE_COLUMNS>(r.how.to, row, first + i * step, by, kept[i]);
    for (size_t begin = KEPT * step; begin < all; begin += step) {
        load_columns(r, row, first + begin, again);
        hadamard_of_warp<LANE_COLUMNS>(again, r.how.rotation);
        if (first + begin < all)
            sum += store_codes<LANE_COLUMNS>(r.how.to, row, first + begin, by, again);
    }
    sum = sum_of_shares<SHARES>(sum_of_block(sum));
    if (threadIdx.x == 0 && blockIdx.x % SHARES == 0) {
        r.how.to.scales[row] = r.how.scale(by.scale);
        r.how.to.sums[row] = sum;
    }
}

/* ---- What others call ---------------------------------------------------------------------------------- */

static size_t padded(size_t count, size_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

uint64_t gb_cuda_int8_rows_bytes(uint64_t rows, uint64_t columns) {
    return padded(rows, 8) * (padded(columns, INT8_BLOCK) + sizeof(float) + sizeof(int32_t));
}

/* Of many rows fewer warps, with as much in registers as a lane keeps: what all lanes compute of a row is
 * computed less often. */
static unsigned choose_warps(size_t rows, size_t columns, unsigned shares) {
    const size_t of_warp = are_many_rows(rows) ? KEPT * WARP_COLUMNS : WARP_COLUMNS;
    const unsigned warps = blocks_for(columns, of_warp * shares);
    return warps < ROUND_WARPS ? warps : (unsigned)ROUND_WARPS;
}

int8_rows gb_cuda_place_int8_rows(uint8_t *memory, gb_cuda_layout layout, size_t rows, size_t columns) {
    int8_rows to = {};
    to.layout = layout;
    to.padded_rows = padded(rows, 8);
    to.codes = memory;
    to.scales = reinterpret_cast<float *>(memory + to.padded_rows * padded(columns, INT8_BLOCK));
    to.sums = reinterpret_cast<int32_t *>(to.scales + to.padded_rows);
    return to;
}

static row_rounding rounding_into(const gb_cuda_prepared *prepared) {
    const size_t columns = prepared->as->dims[prepared->as->rank - 1],
                 rows = gb_cuda_elements(prepared->as) / columns;
    return {gb_cuda_place_int8_rows(static_cast<uint8_t *>(prepared->data), prepared->layout, rows, columns),
            prepared->rotation, gb_hadamard_scale(prepared->rotation), nullptr, 0};
}

gb_cuda_prepared gb_cuda_int8_input_of(const gb_cuda_call *product, gb_cuda_layout layout) {
    gb_cuda_prepared input = {};
    input.as = product->operands[0];
    input.layout = layout;
    input.rotation = (uint32_t)gb_node_int(product->node, GB_ATTRIBUTE_ROTATION);
    return input;
}

int8_rows gb_cuda_round_rows(const gb_cuda_call *product) {
    const gb_cuda_tensor *x = product->operands[0];
    const rounding r = {data_of<const float>(x), x->dims[x->rank - 1], rounding_into(product->input)};
    const unsigned rows = (unsigned)(gb_cuda_elements(x) / r.columns),
                   shares = shares_of_rows(rows, r.columns);
    if (product->prepares_input)
        add_clusters(product->launches, shares, "round_rows",
                     shares > 1 ? run_round_rows<ROW_SHARES> : run_round_rows<1>, rows * shares,
                     choose_warps(rows, r.columns, shares) * WARP, 0, r);
    return r.how.to;
}

row_rounding gb_cuda_epilogue_rounding(const gb_cuda_call *call) {
    const gb_cuda_exchange *e = call->rounds_for_ranks ? call->scratch->exchange : nullptr;
    row_rounding how = {};
    if (!call->epilogue || !gb_cuda_is_rounded(call->epilogue))
        return how;
    how = rounding_into(call->epilogue);
    if (e) {
        how.ranks = e->on_device;
        how.first = e->rank * (unsigned)(gb_cuda_epilogue_columns(call) / e->ranks);
    }
    return how;
}
