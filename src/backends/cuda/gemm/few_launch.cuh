/* SPDX-License-Identifier: Apache-2.0
 *
 * How a launch of the kernels for few rows and for one is cut, for the files that launch them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_FEW_LAUNCH_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_FEW_LAUNCH_CUH

#include "backends/cuda/gemm/few_product.cuh"

namespace gb_cuda {

enum {
    MOST_SLICE_COLUMNS = 5376,
    ENOUGH_SLOTS = 4,            /* of the ring, to keep memory busy */
    MOST_ONE_ROW_COLUMNS = 32768 /* beside which a ring has its slots on every device */
};

/* ---- Cutting the work ---------------------------------------------------------------------------------- */

/* How many pieces of at most that size a whole has; they are as even as can be. */
inline uint32_t pieces_of(size_t whole, size_t most) {
    return (uint32_t)((whole + most - 1) / most);
}

inline uint32_t slices_of(size_t inputs) {
    return pieces_of(inputs, MOST_SLICE_COLUMNS);
}

template <typename Shape>
inline few_cut cut_of(size_t inputs) {
    few_cut cut;
    cut.atoms = (uint32_t)(inputs / Shape::ATOM_COLUMNS);
    const uint32_t parts = pieces_of(pieces_of(cut.atoms, Shape::PART_ATOMS), slices_of(inputs));
    cut.slice_atoms = parts * Shape::PART_ATOMS;
    cut.load_atoms = pieces_of(parts, pieces_of(parts, Shape::LOAD_PARTS)) * Shape::PART_ATOMS;
    return cut;
}

/* A launch's grid and shared memory. */
struct few_launch {
    dim3 grid;
    few_memory memory;
    uint32_t loads; /* of a block of threads, of which the ring needs no more slots */

    bool has_slots(uint32_t wanted) const {
        return memory.slots >= wanted || memory.slots == loads;
    }
};

/* Whether copying gains nothing by haste before the inputs are there, while the kernels that make them would
 * wait behind it: all that a block of threads has fits into its ring. */
inline bool begins_slowly(const few_launch &made) {
    return made.loads <= made.memory.slots;
}

/* Whether a tile has the kernel for one row. */
template <typename Shape>
inline bool is_one_row(const few_cut &cut, uint32_t rows) {
    return Shape::IN_BYTES && rows == 1 && cut.atoms * Shape::ATOM_COLUMNS <= MOST_ONE_ROW_COLUMNS;
}

template <typename Shape>
inline few_tile tile_of(const few_cut &cut, uint32_t rows) {
    if (is_one_row<Shape>(cut, rows))
        return few_tile{1, 1, FEW_COLUMNS};
    const uint32_t columns = rows > FEW_COLUMNS ? 2 * FEW_COLUMNS : FEW_COLUMNS;
    return few_tile{rows, columns, 0};
}

/* With the slices shared by that many blocks of threads. */
template <typename Shape>
inline few_launch launch_of(const few_products &p, const few_cut &cut, uint32_t shares, uint32_t tile_rows) {
    const uint32_t tiles = pieces_of(p.rows, tile_rows), blocks = p.of[p.count - 1].blocks_end;
    const uint32_t most = gb_cuda_find_facts()->multiprocessors / (shares * tiles),
                   slices = pieces_of(cut.slices(), shares);
    few_launch made;
    made.grid = dim3(most < 1 ? 1 : most > blocks ? blocks : most, shares, tiles);
    made.loads = pieces_of(blocks, made.grid.x) * slices * pieces_of(cut.slice_atoms, cut.load_atoms);
    made.memory =
        few_memory_of<Shape>(cut, slices, tile_of<Shape>(cut, tile_rows), most_shared_bytes(), made.loads);
    return made;
}

/* With as few shares as leave room for enough slots; pairs have nowhere to put sums of slices, and one row
 * has room. */
template <typename Shape>
inline few_launch best_launch(const few_products &p, const few_cut &cut, uint32_t tile_rows) {
    const uint32_t most = p.expert || is_one_row<Shape>(cut, tile_rows) ? 1 : cut.slices();
    few_launch made = launch_of<Shape>(p, cut, 1, tile_rows);
    for (uint32_t shares = 2; shares <= most && !made.has_slots(ENOUGH_SLOTS); shares++)
        made = launch_of<Shape>(p, cut, shares, tile_rows);
    return made;
}

/* ---- Matrices ------------------------------------------------------------------------------------------ */

inline void add_matrix(few_products &p, const gb_cuda_tensor *weight, float *y) {
    const uint8_t *data = data_of<const uint8_t>(weight);
    const gb_planes &planes = weight->planes;
    few_product &made = p.of[p.count];
    made.codes = data + planes.codes.offset;
    made.scales = data + planes.scales.offset;
    made.biases = data + planes.biases.offset;
    made.y = y;
    made.outputs = (uint32_t)weight->dims[weight->rank - 2];
    made.blocks_end = (p.count ? p.of[p.count - 1].blocks_end : 0) + made.outputs / FEW_BLOCK_ROWS;
    p.count++;
}

inline few_products products_of(const gb_cuda_tensor *weight) {
    few_products p = {};
    p.code_bytes = (uint32_t)(weight->planes.codes.row_bytes * FEW_BLOCK_ROWS);
    p.scale_bytes = (uint32_t)(weight->planes.scales.row_bytes * FEW_BLOCK_ROWS);
    const bool is_raised = weight->format.bits == 4 && !weight->takes_bytes;
    p.offset = (float)((is_raised ? 128 : 0) + gb_format_center(&weight->format));
    p.x_reuse = 1;
    return p;
}

} // namespace gb_cuda

#endif
