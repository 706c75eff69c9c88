/* SPDX-License-Identifier: Apache-2.0
 *
 * all_gather of rows that a product wants rounded to 8 bits: each rank rounds its columns once the largest
 * number of all ranks' is known, and writes the codes, a quarter of the bytes, where all want them.
 */
#include "backends/cuda/exchange/round_for_ranks.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

/* Waiting for each of many narrow rows takes longer than exchanging all bytes. */
enum { PARTS_OF_ROW = 3 /* of a block's threads */, LEAST_PROMPT_COLUMNS = 1024 /* of a rank */ };

struct own_columns {
    const float *x; /* [rows, columns] */
    unsigned rows, columns;
    row_rounding how;
    bool shares_device;
};

template <int SHARES>
static __global__ void __launch_bounds__(ROUND_WARPS *WARP)
    run_all_gather_rounded(GB_GRID_CONSTANT own_columns own) {
    constexpr int PARTS = SHARES > 1 ? 1 : (int)PARTS_OF_ROW;
    arrive_in_cluster();
    wait_alone();
    if (!own.shares_device)
        let_next_begin();
    rank_rounding<LANE_COLUMNS, PARTS, SHARES> rows(own.how, own.columns);
    for (size_t row = blockIdx.x / SHARES; row < own.rows; row += gridDim.x / SHARES) {
        row_part<LANE_COLUMNS> x[PARTS] = {};
#pragma unroll
        for (unsigned i = 0; i < PARTS; i++)
            if (part_column<LANE_COLUMNS, SHARES>(i) < own.columns)
                x[i].load(own.x + row * own.columns, part_column<LANE_COLUMNS, SHARES>(i));
        rows.add(row, x);
    }
    rows.end();
}

static unsigned columns_of(const gb_cuda_tensor *tensor) {
    return (unsigned)tensor->dims[tensor->rank - 1];
}

bool gb_cuda_gather_has_epilogue(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_prepared *rows = call->epilogue;
    const unsigned columns = columns_of(call->operands[0]), most = PARTS_OF_ROW * ROUND_WARPS * WARP_COLUMNS,
                   least = gb_cuda_is_prompt(call) ? (unsigned)LEAST_PROMPT_COLUMNS : 1;
    return rows && columns >= least && gb_node_int(call->node, GB_ATTRIBUTE_RANKS) > 1 &&
           gb_node_int(call->node, GB_ATTRIBUTE_SECTIONS) == 1 && gb_cuda_is_rounded(rows) &&
           columns_of(rows->as) == columns_of(call->results[0]) && columns % INT8_BLOCK == 0 &&
           columns <= most && (rows->rotation == 0 || columns % rows->rotation == 0);
}

/* Few rows are shared out as wide as they go; of many each has few threads, which wait at the same time. */
static unsigned warps_for(const own_columns &own, unsigned shares) {
    const unsigned parts = own.rows > 2 * WARP ? (unsigned)PARTS_OF_ROW : 1,
                   warps = blocks_for(own.columns, (size_t)parts * shares * WARP_COLUMNS);
    return warps < ROUND_WARPS ? warps : (unsigned)ROUND_WARPS;
}

void gb_cuda_all_gather_rounded(const gb_cuda_call *call) {
    const gb_cuda_exchange *e = call->scratch->exchange;
    const gb_cuda_tensor *x = call->operands[0];
    own_columns own = {data_of<const float>(x), (unsigned)(gb_cuda_elements(x) / columns_of(x)),
                       columns_of(x), gb_cuda_epilogue_rounding(call), e && e->shares_device};
    const unsigned shares = gb_cuda_row_shares(e, own.rows, shares_of_rows(own.rows, own.columns)),
                   blocks = own.rows * shares, most = e ? e->row_blocks : blocks;
    add_clusters(call->launches, shares, "all_gather_rounded",
                 shares > 1 ? run_all_gather_rounded<ROW_SHARES> : run_all_gather_rounded<1>,
                 blocks < most ? blocks : most, warps_for(own, shares) * WARP, 0, own);
}
