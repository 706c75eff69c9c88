/* SPDX-License-Identifier: Apache-2.0
 *
 * Grid and shared memory of a GEMV of one row in 8 bits, for the files that launch one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROW_LAUNCH_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_INT8_ROW_LAUNCH_CUH

#include "backends/cuda/gemm/int8/gemv_one_row.cuh"

namespace gb_cuda {

/* Blocks of threads that have places to join sums. */
enum { ROW_MOST_BLOCKS = GB_CUDA_ARRIVALS * sizeof(uint32_t) / (GB_TILE_ROWS * sizeof(uint64_t)) };

struct row_launch {
    dim3 grid;
    size_t shared_bytes;
    int8_row_products products;
};

/* As many stages as there is room for, the same number for each turn. */
template <int GROUP>
inline row_launch row_launch_of(const int8_row_products &p) {
    typedef int8_row_gemv<GROUP> gemv;
    const uint32_t all = p.tiles * p.blocks(), blocks = gb_cuda_find_facts()->multiprocessors,
                   most = blocks < ROW_MOST_BLOCKS ? blocks : (uint32_t)ROW_MOST_BLOCKS;
    const row_memory rest(p.columns);
    row_launch launch = {all < most ? all : most, rest.size, p};
    uint32_t stages = (uint32_t)((most_shared_bytes() - rest.size) / gemv::STAGE_BYTES);
    stages = stages < ROW_MOST_STAGES ? stages / ROW_TURNS * ROW_TURNS : (uint32_t)ROW_MOST_STAGES;
    launch.products.stages = stages;
    launch.shared_bytes = rest.size + stages * (size_t)gemv::STAGE_BYTES;
    return launch;
}

/* Whether a launch can have these products: each of the same one row with a packed matrix. */
inline bool supports_int8_row(const gb_cuda_call *const *calls, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const gb_cuda_tensor *x = calls[i]->operands[0], *weight = calls[i]->operands[1];
        if (calls[i]->row_class != GB_CUDA_ONE_ROW || !gb_cuda_is_in_int8_tiles(calls[i]) ||
            weight->rank != 2 || gb_cuda_elements(x) != weight->dims[1] ||
            !gb_cuda_packed_int8_joins(calls[0], calls[i]))
            return false;
    }
    return count <= GB_CUDA_MOST_JOINED;
}

/* Those products, but for the stages. */
inline int8_row_products int8_row_products_of(const gb_cuda_call *const *calls, uint32_t count) {
    int8_row_products p = {};
    for (uint32_t i = 0; i < count; i++)
        p.of[i] = gb_cuda_int8_matrix(calls[i], &p.tiles);
    p.joined = reinterpret_cast<unsigned long long *>(calls[0]->scratch->arrivals);
    p.inputs = (uint32_t)calls[0]->operands[1]->dims[1];
    p.columns = int8_blocks_of(calls[0]) * GB_TILE_COLUMNS;
    p.rotation = (unsigned)gb_node_int(calls[0]->node, GB_ATTRIBUTE_ROTATION);
    p.factor = gb_hadamard_scale(p.rotation);
    return p;
}

} // namespace gb_cuda

#endif
