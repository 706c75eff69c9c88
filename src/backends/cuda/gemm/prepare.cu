/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

/* Which row of x becomes which row: the same one, or the entries of a list. */
struct row_source {
    const float *x;
    size_t columns;
    const int32_t *order; /* NULL: the same */
    size_t x_reuse;
};

/* Loads a quarter's columns of prepared row number `row`; false: there is none. */
__device__ static bool load_quarter(const row_source &from, size_t row, size_t quarter, float v[8]) {
    const int64_t source = from.order ? from.order[row] : (int64_t)row;
    if (source < 0)
        return false;
    const float *x = from.x + (size_t)source / from.x_reuse * from.columns;
    for (size_t i = 0; i < 8; i++)
        v[i] = quarter * 8 + i < from.columns ? x[quarter * 8 + i] : 0.0f;
    return true;
}

/* What rounding left; nothing of infinity and NaN, which the rounded number is. */
__device__ static float rest_of(float value, float rounded) {
    const bool is_finite = (gb_float_bits(rounded) & 0x7f800000u) != 0x7f800000u;
    return is_finite ? value - rounded : 0.0f;
}

/* Two terms: the numbers rounded, and the rounded rest. */
__device__ static void prepare_terms(const prepared_rows &to, size_t row, size_t quarter, float v[8]) {
    if (quarter >= to.units * 4)
        return;
    prepared_rows term = to;
    term.pair_rows *= 2;
    for (int i = 0; i < 2; i++) {
        const uint32_t pairs[4] = {pack_bf16(v[0], v[4]), pack_bf16(v[1], v[5]), pack_bf16(v[2], v[6]),
                                   pack_bf16(v[3], v[7])};
        store_in_pair(term, row, quarter, pairs);
        term.values += to.pair_rows * PAIR_WORDS;
        for (int j = 0; j < 4; j++) {
            v[j] = rest_of(v[j], low_bf16(pairs[j]));
            v[j + 4] = rest_of(v[j + 4], high_bf16(pairs[j]));
        }
    }
}

template <bool HAS_REST>
static __global__ void run_prepare_rows(row_source from, prepared_rows to) {
    wait_for_earlier();
    const size_t row = blockIdx.x, quarter = (size_t)blockIdx.y * blockDim.x + threadIdx.x;
    float v[8];
    if (!load_quarter(from, row, quarter, v))
        return;
    if (HAS_REST)
        prepare_terms(to, row, quarter, v);
    else
        prepare_quarter(to, row, quarter, v);
}

static void launch_prepare(const gb_cuda_call *call, const row_source &from, size_t rows,
                           const prepared_rows &to) {
    enum { THREADS = 128 };
    const dim3 grid((unsigned)rows, blocks_for(to.units * 4, THREADS));
    const auto kernel = to.has_rest ? run_prepare_rows<true> : run_prepare_rows<false>;
    add_launch(call->launches, "prepare_rows", kernel, grid, THREADS, 0, from, to);
}

static size_t units_of(size_t columns) {
    return (columns + UNIT - 1) / UNIT;
}

/* A whole number of eights: the layout by pairs of units has no others. */
static size_t rounded_rows(size_t rows) {
    return (rows + 7) / 8 * 8;
}

uint64_t gb_cuda_prepared_bytes(uint64_t rows, uint64_t columns, gb_dtype weight) {
    const uint64_t beside = weight == GB_QUANTIZED ? 2 * sizeof(float) : UNIT_WORDS * sizeof(uint32_t);
    return rounded_rows(rows) * units_of(columns) * (UNIT_WORDS * sizeof(uint32_t) + beside);
}

static size_t rows_of(const gb_cuda_tensor *x) {
    return gb_cuda_elements(x) / x->dims[x->rank - 1];
}

uint64_t gb_cuda_prepared_size(const gb_cuda_prepared *prepared) {
    const gb_cuda_tensor *x = prepared->as;
    const uint64_t rows = rows_of(x), columns = x->dims[x->rank - 1];
    switch (prepared->layout) {
    case GB_CUDA_BYTES_SWIZZLED:
    case GB_CUDA_BYTES_BY_LANES:
        return gb_cuda_int8_rows_bytes(rows, columns);
    case GB_CUDA_BF16_PAIRS_AND_REST:
        return gb_cuda_prepared_bytes(rows, columns, GB_BF16);
    default:
        return gb_cuda_prepared_bytes(rows, columns, GB_QUANTIZED);
    }
}

gb_cuda_prepared gb_cuda_input_of(const gb_cuda_call *product) {
    const gb_cuda_tensor *weight = product->operands[1];
    gb_cuda_prepared input = {};
    input.as = product->operands[0];
    if (gb_cuda_supports_wgmma(product, weight)) {
        input.layout = weight->dtype == GB_BF16 ? GB_CUDA_BF16_PAIRS_AND_REST : GB_CUDA_BF16_PAIRS;
    } else if (weight->int8_input && !gb_cuda_is_prompt(product)) {
        input.layout = GB_CUDA_BYTES_BY_GROUPS;
        input.group = weight->format.group;
    }
    return input;
}

static prepared_rows place_of(const gb_cuda_prepared *prepared) {
    const gb_cuda_tensor *x = prepared->as;
    const size_t rows = rows_of(x);
    prepared_rows place = {};
    place.units = units_of(x->dims[x->rank - 1]);
    place.values = static_cast<uint32_t *>(prepared->data);
    place.group = prepared->group;
    place.has_rest = prepared->layout == GB_CUDA_BF16_PAIRS_AND_REST;
    if (place.has_rest || prepared->layout == GB_CUDA_BF16_PAIRS)
        place.pair_rows = rounded_rows(rows);
    else
        place.sums = reinterpret_cast<float *>(place.values + rows * place.units * UNIT_WORDS);
    return place;
}

prepared_rows gb_cuda_epilogue_rows(const gb_cuda_call *call) {
    const bool is_there = call->epilogue && !gb_cuda_is_rounded(call->epilogue);
    return is_there ? place_of(call->epilogue) : prepared_rows{};
}

prepared_rows gb_cuda_prepare(const gb_cuda_call *product) {
    const gb_cuda_tensor *x = product->operands[0];
    const prepared_rows place = place_of(product->input);
    if (product->prepares_input)
        launch_prepare(product, row_source{data_of<const float>(x), x->dims[x->rank - 1], nullptr, 1},
                       rows_of(x), place);
    return place;
}

void gb_cuda_prepare_entries(const gb_cuda_call *call, const gb_cuda_tensor *x, const int32_t *order,
                             size_t entries, size_t x_reuse, const prepared_rows &to) {
    launch_prepare(call, row_source{data_of<const float>(x), x->dims[x->rank - 1], order, x_reuse}, entries,
                   to);
}
