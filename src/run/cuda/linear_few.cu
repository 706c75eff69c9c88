/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the kernels for few rows and for one (device/few_rows.cuh, device/one_row.cuh): of generated
 * tokens, any number of them in tiles of 16, and of chosen experts.
 */
#include "run/cuda/device/codes.cuh"
#include "run/cuda/device/few_rows.cuh"
#include "run/cuda/device/one_row.cuh"
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum {
    MULTIPROCESSORS = 132, /* for which the work is cut; others get through it too */
    MOST_SLICE_COLUMNS = 5376,
    ENOUGH_SLOTS = 4, /* of the ring, to keep memory busy */
    LEAST_SLOTS = 2,
    MOST_ONE_ROW_COLUMNS = 32768 /* beside which a ring has its slots on every device */
};

/* ---- Cutting the work ---------------------------------------------------------------------------------- */

/* How many pieces of at most that size a whole has; they are as even as can be. */
static uint32_t pieces_of(size_t whole, size_t most) {
    return (uint32_t)((whole + most - 1) / most);
}

static uint32_t slices_of(size_t inputs) {
    return pieces_of(inputs, MOST_SLICE_COLUMNS);
}

template <typename Shape>
static few_cut cut_of(size_t inputs) {
    few_cut cut;
    cut.atoms = (uint32_t)(inputs / Shape::ATOM_COLUMNS);
    cut.slice_atoms = pieces_of(cut.atoms, slices_of(inputs));
    cut.turn_atoms = pieces_of(cut.slice_atoms, pieces_of(cut.slice_atoms, Shape::TURN_ATOMS));
    return cut;
}

/* A launch's grid and shared memory. */
struct few_launch {
    dim3 grid;
    few_memory memory;
    uint32_t turns; /* of a block of threads, of which the ring needs no more slots */

    bool has_slots(uint32_t wanted) const {
        return memory.slots >= wanted || memory.slots == turns;
    }
};

/* Whether a tile has the kernel for one row. */
template <typename Shape>
static bool is_one_row(const few_cut &cut, uint32_t rows) {
    return Shape::IN_BYTES && rows == 1 && cut.atoms * Shape::ATOM_COLUMNS <= MOST_ONE_ROW_COLUMNS;
}

template <typename Shape>
static few_tile tile_of(const few_cut &cut, uint32_t rows) {
    if (is_one_row<Shape>(cut, rows))
        return few_tile{1, 1, FEW_PARTS * FEW_BLOCK_ROWS, false, FEW_COLUMNS};
    const uint32_t columns = rows > FEW_COLUMNS ? 2 * FEW_COLUMNS : FEW_COLUMNS;
    return few_tile{rows, columns, FEW_PARTS * FEW_BLOCK_ROWS * columns, true, 0};
}

/* With the slices shared by that many blocks of threads. */
template <typename Shape>
static few_launch launch_of(const few_products &p, const few_cut &cut, uint32_t shares, uint32_t tile_rows) {
    const uint32_t tiles = pieces_of(p.rows, tile_rows), blocks = p.of[p.count - 1].blocks_end;
    const uint32_t most = MULTIPROCESSORS / (shares * tiles), slices = pieces_of(cut.slices(), shares);
    few_launch made;
    made.grid = dim3(most < 1 ? 1 : most > blocks ? blocks : most, shares, tiles);
    made.turns = pieces_of(blocks, made.grid.x) * slices * pieces_of(cut.slice_atoms, cut.turn_atoms);
    made.memory =
        few_memory_of<Shape>(cut, slices, tile_of<Shape>(cut, tile_rows), most_shared_bytes(), made.turns);
    return made;
}

/* With as few shares as leave room for enough slots; pairs have nowhere to put sums of slices, and one row
 * has room. */
template <typename Shape>
static few_launch best_launch(const few_products &p, const few_cut &cut, uint32_t tile_rows) {
    const uint32_t most = p.expert || is_one_row<Shape>(cut, tile_rows) ? 1 : cut.slices();
    few_launch made = launch_of<Shape>(p, cut, 1, tile_rows);
    for (uint32_t shares = 2; shares <= most && !made.has_slots(ENOUGH_SLOTS); shares++)
        made = launch_of<Shape>(p, cut, shares, tile_rows);
    return made;
}

/* Leaves the first rows of a product's inputs and outputs out. */
static void skip_rows(few_products &p, size_t rows, size_t inputs) {
    const size_t units = p.x.units;
    p.x.values += rows * units * (p.x.group ? UNIT_WORDS / 2 : UNIT_WORDS);
    p.x.sums += p.x.group ? rows * (inputs / p.x.group) * 2 : rows * units * 2;
    for (uint32_t i = 0; i < p.count; i++)
        p.of[i].y += rows * p.of[i].outputs;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <typename Shape>
static void launch_tiles(cudaStream_t stream, const few_products &p, dim3 grid) {
    if constexpr (Shape::IN_BYTES)
        if (is_one_row<Shape>(p.cut, p.tile_rows)) {
            const auto one = multiply_one<Shape>;
            GB_LAUNCH(one, grid, FEW_THREADS, p.memory.size, stream, p);
            return;
        }
    const auto kernel = p.tile_rows > FEW_COLUMNS ? multiply_few<Shape, 2> : multiply_few<Shape, 1>;
    GB_LAUNCH(kernel, grid, FEW_THREADS, p.memory.size, stream, p);
}

/* As many rows at a time as leave room for the ring. */
template <typename Shape>
static void launch_rows(cudaStream_t stream, few_products p, size_t inputs) {
    const uint32_t rows = p.rows;
    p.cut = cut_of<Shape>(inputs);
    p.is_read_once = !p.expert && rows <= 2 * FEW_COLUMNS;
    for (uint32_t first = 0; first < rows; first += p.rows) {
        few_launch made;
        for (uint32_t most = p.expert ? 1 : 2 * FEW_COLUMNS;; most /= 2) {
            p.tile_rows = rows - first < most ? rows - first : most;
            p.rows = p.expert ? rows : p.tile_rows;
            made = best_launch<Shape>(p, p.cut, p.tile_rows);
            if (made.has_slots(LEAST_SLOTS) || most == 1)
                break;
        }
        p.memory = made.memory;
        launch_tiles<Shape>(stream, p, made.grid);
        skip_rows(p, p.rows, inputs);
    }
}

template <bool IN_BYTES, int BITS, int GROUP>
static void launch_inputs(cudaStream_t stream, const few_products &p, const gb_cuda_tensor *weight) {
    const size_t inputs = weight->dims[weight->rank - 1];
    const bool is_bf16 = weight->format.scale == GB_BF16;
    if (weight->format.has_bias)
        return is_bf16 ? launch_rows<few_shape<IN_BYTES, BITS, GROUP, true, true>>(stream, p, inputs)
                       : launch_rows<few_shape<IN_BYTES, BITS, GROUP, false, true>>(stream, p, inputs);
    return is_bf16 ? launch_rows<few_shape<IN_BYTES, BITS, GROUP, true, false>>(stream, p, inputs)
                   : launch_rows<few_shape<IN_BYTES, BITS, GROUP, false, false>>(stream, p, inputs);
}

template <int BITS, int GROUP>
static void launch_format(cudaStream_t stream, const few_products &p, const gb_cuda_tensor *weight) {
    if (weight->takes_bytes && GROUP)
        launch_inputs<true, BITS, GROUP>(stream, p, weight);
    else
        launch_inputs<false, BITS, GROUP>(stream, p, weight);
}

static void launch(cudaStream_t stream, const few_products &p, const gb_cuda_tensor *weight) {
    const bool is_4_bit = weight->format.bits == 4;
    switch (weight->format.group) {
    case 0:
        return launch_format<8, 0>(stream, p, weight);
    case 32:
        return is_4_bit ? launch_format<4, 32>(stream, p, weight) : launch_format<8, 32>(stream, p, weight);
    case 64:
        return is_4_bit ? launch_format<4, 64>(stream, p, weight) : launch_format<8, 64>(stream, p, weight);
    default:
        return is_4_bit ? launch_format<4, 128>(stream, p, weight) : launch_format<8, 128>(stream, p, weight);
    }
}

/* ---- Matrices ------------------------------------------------------------------------------------------ */

static void add_matrix(few_products &p, const gb_cuda_tensor *weight, float *y) {
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

static few_products products_of(const gb_cuda_tensor *weight) {
    few_products p = {};
    p.code_bytes = (uint32_t)(weight->planes.codes.row_bytes * FEW_BLOCK_ROWS);
    p.scale_bytes = (uint32_t)(weight->planes.scales.row_bytes * FEW_BLOCK_ROWS);
    const bool is_raised = weight->format.bits == 4 && !weight->takes_bytes;
    p.offset = (float)((is_raised ? 128 : 0) + gb_format_center(&weight->format));
    p.x_reuse = 1;
    return p;
}

void gb_cuda_few_pairs(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                       const row_lists &lists) {
    few_products p = products_of(weight);
    add_matrix(p, weight, data_of<float>(call->results[0]));
    p.x = gb_cuda_prepare(call, x);
    p.rows = (uint32_t)lists.rows;
    p.tile_rows = 1;
    p.expert = lists.expert;
    p.x_reuse = (uint32_t)lists.x_reuse;
    launch(call->stream, p, weight);
}

bool gb_cuda_linear_joins(const gb_cuda_call *call, const gb_cuda_call *other) {
    const gb_cuda_tensor *a = call->operands[1], *b = other->operands[1];
    return !call->is_prefill && !other->is_prefill && call->operands[0] == other->operands[0] &&
           a->is_packed && b->is_packed && gb_format_equal(&a->format, &b->format) &&
           a->takes_bytes == b->takes_bytes && a->rank == 2 && b->rank == 2 && a->dims[1] == b->dims[1] &&
           slices_of(a->dims[1]) == 1;
}

void gb_cuda_few_linears(const gb_cuda_call *const *calls, uint32_t count) {
    const gb_cuda_tensor *x = calls[0]->operands[0], *weight = calls[0]->operands[1];
    few_products p = products_of(weight);
    for (uint32_t i = 0; i < count; i++)
        add_matrix(p, calls[i]->operands[1], data_of<float>(calls[i]->results[0]));
    p.x = gb_cuda_prepare(calls[0], x);
    p.rows = p.tile_rows = (uint32_t)x->dims[0];
    p.partial = reinterpret_cast<float *>(calls[0]->scratch->bytes);
    p.arrivals = calls[0]->scratch->arrivals;
    launch(calls[0]->stream, p, weight);
}

uint64_t gb_cuda_linear_scratch(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    if (!weight->is_packed)
        return 0;
    const uint32_t slices = slices_of(weight->dims[1]);
    return slices == 1 ? 0 : (uint64_t)slices * 2 * FEW_COLUMNS * weight->dims[0] * sizeof(float);
}
