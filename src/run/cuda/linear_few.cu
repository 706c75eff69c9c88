/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the kernel for few rows (device/few_rows.cuh): of generated tokens, any number of them in tiles
 * of 16, and of chosen experts.
 */
#include "run/cuda/device/codes.cuh"
#include "run/cuda/device/few_rows.cuh"
#include "run/cuda/device/row_lists.cuh"

using namespace gb_cuda;

enum {
    MULTIPROCESSORS = 132, /* for which the work is cut; others get through it too */
    MOST_RESIDENT = 3,     /* blocks of threads on one of them */
    SHARED_BYTES = 227 << 10,
    MOST_SLICE_COLUMNS = 5376 /* of which 16 rows in 8 bits are in shared memory */
};

/* ---- Cutting the work ---------------------------------------------------------------------------------- */

/* Slices of the sums of a matrix: enough for its rows to fit, and so many that the last of the rounds in
 * which the device does blocks of outputs is not a waste. */
static uint32_t slices_of(size_t outputs, size_t inputs) {
    enum { MORE = 4, COST = 50 /* of a round, of which a slice costs 1 */ };
    const uint32_t least = (uint32_t)blocks_for(inputs, MOST_SLICE_COLUMNS);
    uint32_t best = least;
    size_t best_rounds = 0;
    for (uint32_t s = least; least > 1 && s < least + MORE; s++) {
        const size_t rounds = blocks_for(outputs / FEW_BLOCK_ROWS * s, MULTIPROCESSORS);
        if (best_rounds == 0 || rounds * (COST + s) * best < best_rounds * (COST + best) * s) {
            best = s;
            best_rounds = rounds;
        }
    }
    return best;
}

static uint32_t largest_slice(uint32_t atoms, uint32_t slices) {
    uint32_t largest = 0;
    for (uint32_t s = 0; s < slices; s++) {
        const uint32_t parts = slices * FEW_PARTS, begin = few_part_begin(atoms, s * FEW_PARTS, parts);
        const uint32_t size = few_part_begin(atoms, (s + 1) * FEW_PARTS, parts) - begin;
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Ranges of blocks of outputs, as many as fill the device together with the grid's other dims. */
static uint32_t ranges_of(uint32_t blocks, size_t others, uint32_t shared_bytes) {
    size_t resident = SHARED_BYTES / (shared_bytes + 1024);
    resident = resident < 1 ? 1 : resident > MOST_RESIDENT ? (size_t)MOST_RESIDENT : resident;
    const size_t ranges = MULTIPROCESSORS * resident / others;
    return ranges < 1 ? 1 : ranges > blocks ? blocks : (uint32_t)ranges;
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

template <bool IN_BYTES, int BITS, int GROUP, bool IS_BF16, int TILES>
static void launch_tiles(cudaStream_t stream, const few_products &p, uint32_t slices) {
    typedef few_shape<IN_BYTES, BITS, GROUP> shape;
    const auto kernel = multiply_few<IN_BYTES, BITS, GROUP, IS_BF16, TILES>;
    const uint32_t tiles = blocks_for(p.rows, p.tile_rows), blocks = p.of[p.count - 1].blocks_end;
    const few_memory memory = few_memory_of<shape>(largest_slice(p.atoms, slices), TILES, p.tile_rows);
    const dim3 grid(ranges_of(blocks, (size_t)slices * tiles, memory.size), slices, tiles);
    GB_LAUNCH(kernel, grid, FEW_THREADS, memory.size, stream, p);
}

template <bool IN_BYTES, int BITS, int GROUP, bool IS_BF16>
static void launch_rows(cudaStream_t stream, few_products p, size_t inputs, uint32_t slices) {
    typedef few_shape<IN_BYTES, BITS, GROUP> shape;
    p.atoms = (uint32_t)(inputs / shape::ATOM_COLUMNS);
    if (p.expert)
        return launch_tiles<IN_BYTES, BITS, GROUP, IS_BF16, 1>(stream, p, slices);
    const few_memory wide = few_memory_of<shape>(largest_slice(p.atoms, slices), 2, 2 * FEW_COLUMNS);
    const uint32_t rows = p.rows, most = FEW_COLUMNS * (wide.size <= most_shared_bytes() ? 2 : 1);
    for (uint32_t first = 0; first < rows; first += most) {
        p.rows = p.tile_rows = rows - first < most ? rows - first : most;
        if (p.rows > FEW_COLUMNS)
            launch_tiles<IN_BYTES, BITS, GROUP, IS_BF16, 2>(stream, p, slices);
        else
            launch_tiles<IN_BYTES, BITS, GROUP, IS_BF16, 1>(stream, p, slices);
        skip_rows(p, p.rows, inputs);
    }
}

template <int BITS, int GROUP>
static void launch_format(cudaStream_t stream, const few_products &p, const gb_cuda_tensor *weight,
                          uint32_t slices) {
    const size_t inputs = weight->dims[weight->rank - 1];
    const bool is_bf16 = weight->format.scale == GB_BF16;
    if (weight->takes_bytes && GROUP)
        return is_bf16 ? launch_rows<true, BITS, GROUP, true>(stream, p, inputs, slices)
                       : launch_rows<true, BITS, GROUP, false>(stream, p, inputs, slices);
    return is_bf16 ? launch_rows<false, BITS, GROUP, true>(stream, p, inputs, slices)
                   : launch_rows<false, BITS, GROUP, false>(stream, p, inputs, slices);
}

static void launch(cudaStream_t stream, const few_products &p, const gb_cuda_tensor *weight,
                   uint32_t slices) {
    const bool is_4_bit = weight->format.bits == 4;
    switch (weight->format.group) {
    case 0:
        return launch_format<8, 0>(stream, p, weight, slices);
    case 32:
        return is_4_bit ? launch_format<4, 32>(stream, p, weight, slices)
                        : launch_format<8, 32>(stream, p, weight, slices);
    case 64:
        return is_4_bit ? launch_format<4, 64>(stream, p, weight, slices)
                        : launch_format<8, 64>(stream, p, weight, slices);
    default:
        return is_4_bit ? launch_format<4, 128>(stream, p, weight, slices)
                        : launch_format<8, 128>(stream, p, weight, slices);
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
    p.has_biases = weight->format.has_bias;
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
    launch(call->stream, p, weight, 1);
}

bool gb_cuda_linear_joins(const gb_cuda_call *call, const gb_cuda_call *other) {
    const gb_cuda_tensor *a = call->operands[1], *b = other->operands[1];
    return !call->is_prefill && !other->is_prefill && call->operands[0] == other->operands[0] &&
           a->is_packed && b->is_packed && gb_format_equal(&a->format, &b->format) &&
           a->takes_bytes == b->takes_bytes && a->rank == 2 && b->rank == 2 && a->dims[1] == b->dims[1] &&
           slices_of(a->dims[0], a->dims[1]) == 1 && slices_of(b->dims[0], b->dims[1]) == 1;
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
    launch(calls[0]->stream, p, weight, slices_of(weight->dims[0], weight->dims[1]));
}

uint64_t gb_cuda_linear_scratch(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    if (!weight->is_packed)
        return 0;
    const uint32_t slices = slices_of(weight->dims[0], weight->dims[1]);
    return slices == 1 ? 0 : (uint64_t)slices * 2 * FEW_COLUMNS * weight->dims[0] * sizeof(float);
}
