/* SPDX-License-Identifier: Apache-2.0
 *
 * Grid, split and shared memory of a GEMV's launch, for the files that launch one.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMV_LAUNCH_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMV_LAUNCH_CUH

#include "backends/cuda/gemm/gemv.cuh"

namespace gb_cuda {

enum {
    MOST_SLICE_COLUMNS = 5376,
    ENOUGH_STAGES = 4,           /* of the pipeline, to keep memory busy */
    MOST_ONE_ROW_COLUMNS = 32768 /* beside which every device has room for the stages */
};

/* ---- Cutting the work ---------------------------------------------------------------------------------- */

/* How many pieces of at most that size a whole has; they are as even as can be. */
inline uint32_t pieces_of(size_t whole, size_t most) {
    return (uint32_t)((whole + most - 1) / most);
}

inline uint32_t slices_of(size_t inputs) {
    return pieces_of(inputs, MOST_SLICE_COLUMNS);
}

/* has_one_row: the launches are of a row each. */
template <typename Shape>
inline gemv_cut cut_of(size_t inputs, bool has_one_row) {
    gemv_cut cut;
    cut.has_one_row = has_one_row;
    cut.atoms = (uint32_t)(inputs / Shape::ATOM_COLUMNS);
    const uint32_t parts = pieces_of(pieces_of(cut.atoms, Shape::PART_ATOMS), slices_of(inputs));
    cut.slice_atoms = parts * Shape::PART_ATOMS;
    cut.load_atoms = pieces_of(parts, pieces_of(parts, Shape::LOAD_PARTS)) * Shape::PART_ATOMS;
    return cut;
}

/* A launch's grid and shared memory. */
struct gemv_launch {
    dim3 grid;
    gemv_memory memory;
    uint32_t loads; /* of a block of threads, which needs no more stages */

    bool has_stages(uint32_t wanted) const {
        return memory.stages >= wanted || memory.stages == loads;
    }
};

/* Whether the copies shall wait for the inputs: all loads of the block fit into the pipeline, and copying
 * early would only delay the kernels that compute the inputs. */
inline bool begins_slowly(const gemv_launch &launch) {
    return launch.loads <= launch.memory.stages;
}

/* Whether tiles have the kernel for one row. */
template <typename Shape>
inline bool is_one_row(const gemv_cut &cut) {
    return Shape::IN_BYTES && cut.has_one_row && cut.atoms * Shape::ATOM_COLUMNS <= MOST_ONE_ROW_COLUMNS;
}

template <typename Shape>
inline gemv_tile tile_of(const gemv_cut &cut, uint32_t rows) {
    if (is_one_row<Shape>(cut))
        return gemv_tile{1, 1, GEMV_COLUMNS};
    const uint32_t columns = rows > GEMV_COLUMNS ? 2 * GEMV_COLUMNS : GEMV_COLUMNS;
    return gemv_tile{rows, columns, 0};
}

/* With the slices shared by that many blocks of threads. */
template <typename Shape>
inline gemv_launch launch_of(const gemv_products &p, const gemv_cut &cut, uint32_t shares,
                             uint32_t tile_rows) {
    const uint32_t tiles = pieces_of(p.rows, tile_rows), blocks = p.of[p.count - 1].blocks_end;
    const uint32_t most = gb_cuda_find_facts()->multiprocessors / (shares * tiles),
                   slices = pieces_of(cut.slices(), shares);
    gemv_launch launch;
    launch.grid = dim3(most < 1 ? 1 : most > blocks ? blocks : most, shares, tiles);
    launch.loads = pieces_of(blocks, launch.grid.x) * slices * pieces_of(cut.slice_atoms, cut.load_atoms);
    launch.memory =
        gemv_memory_of<Shape>(cut, slices, tile_of<Shape>(cut, tile_rows), most_shared_bytes(), launch.loads);
    return launch;
}

/* With as few shares of split-K as leave room for enough stages. Pairs have no place for sums of slices,
 * and one row has room. */
template <typename Shape>
inline gemv_launch best_launch(const gemv_products &p, const gemv_cut &cut, uint32_t tile_rows) {
    const uint32_t most = p.expert || is_one_row<Shape>(cut) ? 1 : cut.slices();
    gemv_launch launch = launch_of<Shape>(p, cut, 1, tile_rows);
    for (uint32_t shares = 2; shares <= most && !launch.has_stages(ENOUGH_STAGES); shares++)
        launch = launch_of<Shape>(p, cut, shares, tile_rows);
    return launch;
}

/* ---- Matrices ------------------------------------------------------------------------------------------ */

inline void add_matrix(gemv_products &p, const gb_cuda_tensor *weight, float *y) {
    const uint8_t *data = data_of<const uint8_t>(weight);
    const gb_planes &planes = weight->planes;
    gemv_product &added = p.of[p.count];
    added.codes = data + planes.codes.offset;
    added.scales = data + planes.scales.offset;
    added.biases = data + planes.biases.offset;
    added.y = y;
    added.outputs = (uint32_t)weight->dims[weight->rank - 2];
    added.blocks_end =
        (p.count ? p.of[p.count - 1].blocks_end : 0) + blocks_for(added.outputs, GEMV_BLOCK_ROWS);
    p.count++;
}

inline gemv_products products_of(const gb_cuda_tensor *weight) {
    gemv_products p = {};
    p.code_bytes = (uint32_t)(weight->planes.codes.row_bytes * GEMV_BLOCK_ROWS);
    p.scale_bytes = (uint32_t)(weight->planes.scales.row_bytes * GEMV_BLOCK_ROWS);
    const bool is_raised = weight->format.bits == 4 && !weight->int8_input;
    p.offset = (float)((is_raised ? 128 : 0) + gb_format_center(&weight->format));
    p.x_reuse = 1;
    return p;
}

} // namespace gb_cuda

#endif
