/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops on rows: embedding, gathering, slices, concatenation, norms, rotary positions.
 */
#include "backends/cuda/device/each.cuh"
#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"
#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/norm/row_chain.cuh"

using namespace gb_cuda;

/* ---- Rows that are gathered ---------------------------------------------------------------------------- */

/* A token that is not in the table has a row of zeros. */
struct embedding_function {
    const void *table;
    gb_dtype dtype;
    quantized_matrix matrix;
    const int32_t *ids;
    size_t rows, width;
    float scale, *y;
    __device__ void operator()(size_t m, size_t k) const {
        const int32_t id = ids[m];
        float value = 0;
        if (id >= 0 && (size_t)id < rows)
            value = scale * (dtype == GB_QUANTIZED ? dequantize(matrix, (size_t)id, k)
                                                   : load_float(table, dtype, (size_t)id * width + k));
        y[m * width + k] = value;
    }
};

/* The same of a table that is stored rotated, a warp for 256 columns. */
static __global__ void __launch_bounds__(WARP)
    run_embedding_rotated(quantized_matrix matrix, const int32_t *ids, size_t rows, size_t width,
                          unsigned rotation, float factor, float scale, float *y) {
    wait_for_earlier();
    const size_t m = blockIdx.y, first = ((size_t)blockIdx.x * WARP + threadIdx.x) * LANE_COLUMNS;
    const int32_t id = ids[m];
    const bool is_inside = id >= 0 && (size_t)id < rows;
    float v[LANE_COLUMNS];
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        v[i] = is_inside && first + i < width ? dequantize(matrix, (size_t)id, first + i) : 0.0f;
    hadamard_of_warp<LANE_COLUMNS>(v, rotation);
#pragma unroll
    for (unsigned i = 0; i < LANE_COLUMNS; i++)
        if (first + i < width)
            y[m * width + first + i] = is_inside ? scale * (factor * v[i]) : 0.0f;
}

static void launch_rotated(const gb_cuda_call *call, unsigned rotation, float scale) {
    const gb_cuda_tensor *table = call->operands[0], *ids = call->operands[1];
    const size_t width = table->dims[1];
    const dim3 grid(blocks_for(width, WARP_COLUMNS), (unsigned)ids->dims[0]);
    add_launch(call->launches, "embedding", run_embedding_rotated, grid, WARP, 0, matrix_of(table),
               data_of<const int32_t>(ids), table->dims[0], width, rotation, gb_hadamard_scale(rotation),
               scale, data_of<float>(call->results[0]));
}

void gb_cuda_embedding(const gb_cuda_call *call) {
    const gb_cuda_tensor *table = call->operands[0], *ids = call->operands[1], *y = call->results[0];
    const unsigned rotation = (unsigned)gb_node_int(call->node, GB_ATTRIBUTE_ROTATION);
    const float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    if (rotation > 0)
        return launch_rotated(call, rotation, scale);
    const size_t width = table->dims[1];
    add_each(call->launches, "embedding", ids->dims[0], width,
             embedding_function{table->data, table->dtype, matrix_of(table), data_of<const int32_t>(ids),
                                table->dims[0], width, scale, data_of<float>(y)});
}

struct gather_rows_function {
    const float *x;
    const int32_t *rows;
    size_t row_count, width;
    float *y;
    __device__ void operator()(size_t b, size_t k) const {
        const int32_t row = rows[b];
        y[b * width + k] = row >= 0 && (size_t)row < row_count ? x[(size_t)row * width + k] : 0.0f;
    }
};

void gb_cuda_gather_rows(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *rows = call->operands[1];
    add_each(call->launches, "gather_rows", rows->dims[0], x->dims[1],
             gather_rows_function{data_of<const float>(x), data_of<const int32_t>(rows), x->dims[0],
                                  x->dims[1], data_of<float>(call->results[0])});
}

struct slice_function {
    const float *x;
    size_t from_width, width;
    float *y;
    __device__ void operator()(size_t, size_t i) const {
        y[i] = x[i / width * from_width + i % width];
    }
};

void gb_cuda_slice(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *y = call->results[0];
    const float *from = data_of<const float>(x) + gb_node_int(call->node, GB_ATTRIBUTE_START);
    add_each(call->launches, "slice", 1, gb_cuda_elements(y),
             slice_function{from, x->dims[x->rank - 1], y->dims[y->rank - 1], data_of<float>(y)});
}

struct concatenate_function {
    const float *a, *b;
    size_t a_width, b_width;
    float *y;
    __device__ void operator()(size_t, size_t i) const {
        const size_t width = a_width + b_width, row = i / width, k = i % width;
        y[i] = k < a_width ? a[row * a_width + k] : b[row * b_width + k - a_width];
    }
};

void gb_cuda_concatenate(const gb_cuda_call *call) {
    const gb_cuda_tensor *a = call->operands[0], *b = call->operands[1], *y = call->results[0];
    add_each(call->launches, "concatenate", 1, gb_cuda_elements(y),
             concatenate_function{data_of<const float>(a), data_of<const float>(b), a->dims[a->rank - 1],
                                  b->dims[b->rank - 1], data_of<float>(y)});
}

/* ---- Norms --------------------------------------------------------------------------------------------- */

/* A thread's part of a row's sum of squares. */
__device__ static float squares(const float *x, unsigned size) {
    const unsigned piece = size <= LONGEST_WARP_ROW ? 1 : norm_piece(size);
    float sum = 0;
    for (unsigned first = threadIdx.x * piece; first < size; first += blockDim.x * piece)
        for (unsigned i = first; i < first + piece && i < size; i++)
            sum += x[i] * x[i];
    return sum;
}

/* A row is a block's. Where `prepared` is somewhere, y is prepared, too. */
static __global__ void run_normalize(normalization n, const float *x, prepared_rows prepared, float *y) {
    wait_for_earlier();
    __shared__ float partial[WARP];
    x += blockIdx.x * n.size;
    y += blockIdx.x * n.size;
    const float factor = norm_factor(n, norm_sum(squares(x, (unsigned)n.size), partial));
    if (!prepared.values) {
        for (size_t i = threadIdx.x; i < n.size; i += blockDim.x)
            y[i] = normalized(n, x[i], factor, i);
        return;
    }
    for (size_t first = 0; first < prepared.units * 4; first += blockDim.x) {
        const size_t quarter = first + threadIdx.x;
        float v[8];
        for (size_t i = 0; i < 8; i++) {
            const size_t column = quarter * 8 + i;
            v[i] = 0;
            if (column < n.size)
                y[column] = v[i] = normalized(n, x[column], factor, column);
        }
        prepare_quarter(prepared, blockIdx.x, quarter, v);
    }
}

static void launch_norm(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    const normalization n = normalization_of(call);
    prepared_rows prepared = {};
    if (call->epilogue && gb_cuda_epilogue_columns(call) == n.size)
        prepared = gb_cuda_epilogue_rows(call);
    if (gb_cuda_long_norm(call, n, prepared))
        return;
    const unsigned rows = (unsigned)(gb_cuda_elements(x) / n.size);
    const unsigned threads = n.size <= LONGEST_WARP_ROW ? (unsigned)WARP : (unsigned)NORM_THREADS;
    add_launch(call->launches, "normalize", run_normalize, rows, threads, 0, n, data_of<const float>(x),
               prepared, data_of<float>(call->results[0]));
}

void gb_cuda_rms_norm(const gb_cuda_call *call) {
    launch_norm(call);
}

void gb_cuda_l2_normalize(const gb_cuda_call *call) {
    launch_norm(call);
}

/* ---- Rotary positions ---------------------------------------------------------------------------------- */

/* The second element of a pair is its partner's to write. */
struct rope_function {
    const float *x;
    const int32_t *positions;
    const float *frequencies;
    size_t frequency_count, pair_offset, width, size;
    int32_t start;
    float scale, *y;
    __device__ void operator()(size_t m, size_t i) const {
        const size_t d = (unsigned)i % (unsigned)size;
        const float *from = x + m * width + i;
        float *to = y + m * width + i;
        if (d < frequency_count) {
            float sine, cosine;
            const float a = from[0], b = from[pair_offset];
            gb_sin_cos((float)(positions[m] + start) * frequencies[d], &sine, &cosine);
            sine *= scale;
            cosine *= scale;
            to[0] = a * cosine - b * sine;
            to[pair_offset] = b * cosine + a * sine;
        } else if (d < pair_offset || d >= pair_offset + frequency_count) {
            to[0] = from[0];
        }
    }
};

void gb_cuda_rope(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0], *frequencies = call->operands[2];
    rope_function f = {};
    f.x = data_of<const float>(x);
    f.positions = data_of<const int32_t>(call->operands[1]);
    f.frequencies = data_of<const float>(frequencies);
    f.frequency_count = frequencies->dims[0];
    f.pair_offset = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_PAIR_OFFSET);
    f.start = (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_START);
    f.width = x->dims[1] * x->dims[2];
    f.size = x->dims[2];
    f.scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    f.y = data_of<float>(call->results[0]);
    add_each(call->launches, "rope", x->dims[0], f.width, f);
}
