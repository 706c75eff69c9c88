/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMV of matrices that are not quantized, in float32: a warp has an output of some rows, its lanes read it
 * in pieces of 16 bytes, and a tree adds their sums. The first pieces are prefetched before earlier kernels
 * end.
 */
#include "backends/cuda/gemm/row_lists.cuh"

using namespace gb_cuda;

enum { WARPS = 4, ROWS = 8, PIECES = 8 /* in flight at a time */, PIECE_BYTES = 16 };

/* A lane's pieces of a row of the weight. T: float, or uint16_t for the 16-bit dtypes. */
template <typename T>
struct weight_pieces {
    enum { COLUMNS = PIECE_BYTES / (int)sizeof(T) };
    uint32_t words[PIECES][4];

    /* Column of piece j of those from column `first` on. */
    __device__ static size_t column(size_t first, int j) {
        return first + ((size_t)j * WARP + threadIdx.x % WARP) * COLUMNS;
    }

    __device__ void load(const T *row, size_t first, size_t end, bool is_aligned) {
#pragma unroll
        for (int j = 0; j < PIECES; j++) {
            const size_t k = column(first, j);
            uint4 piece = {0, 0, 0, 0};
            if (is_aligned && k < end)
                piece = *reinterpret_cast<const uint4 *>(row + k);
            words[j][0] = piece.x;
            words[j][1] = piece.y;
            words[j][2] = piece.z;
            words[j][3] = piece.w;
            for (int e = 0; !is_aligned && e < COLUMNS && k + e < end; e++)
                words[j][e * (int)sizeof(T) / 4] |= bits_of(row[k + e]) << (e * (int)sizeof(T) % 4 * 8);
        }
    }

    __device__ static uint32_t bits_of(float value) {
        return gb_float_bits(value);
    }
    __device__ static uint32_t bits_of(uint16_t value) {
        return value;
    }

    __device__ float number(int j, int e, gb_dtype dtype) const {
        if (sizeof(T) == sizeof(float))
            return gb_float_from_bits(words[j][e % 4]);
        const uint32_t both = words[j][e / 2 % 4];
        if (dtype == GB_BF16)
            return e % 2 ? high_bf16(both) : low_bf16(both);
        return e % 2 ? high_half(both) : low_half(both);
    }

    /* sum + these pieces times a row of x. */
    __device__ float multiply(const float *x, size_t first, size_t end, gb_dtype dtype, bool is_aligned,
                              float sum) const {
#pragma unroll
        for (int j = 0; j < PIECES; j++) {
            const size_t k = column(first, j);
            float inputs[COLUMNS] = {};
#pragma unroll
            for (int e = 0; e < COLUMNS; e += 4)
                if (is_aligned && k < end) {
                    const float4 four = *reinterpret_cast<const float4 *>(x + k + e);
                    inputs[e] = four.x;
                    inputs[e + 1] = four.y;
                    inputs[e + 2] = four.z;
                    inputs[e + 3] = four.w;
                }
#pragma unroll
            for (int e = 0; e < COLUMNS; e++) {
                if (!is_aligned && k + e < end)
                    inputs[e] = x[k + e];
                sum = fmaf(number(j, e, dtype), inputs[e], sum);
            }
        }
        return sum;
    }
};

template <typename T>
static __global__ void __launch_bounds__(WARPS *WARP)
    run_gemv_float(const float *__restrict__ x, const T *__restrict__ weight, gb_dtype dtype, size_t inputs,
                   row_lists lists, unsigned tile_rows, float *__restrict__ y) {
    const size_t output = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const bool is_aligned = inputs % weight_pieces<T>::COLUMNS == 0;
    const size_t batch = (size_t)PIECES * WARP * weight_pieces<T>::COLUMNS;
    weight_pieces<T> pieces;
    if (output < lists.outputs && !lists.expert)
        pieces.load(weight + output * inputs, 0, inputs, is_aligned);
    wait_for_earlier();
    const row_tile rows = tile_of(lists, blockIdx.y, tile_rows);
    if (output >= lists.outputs)
        return;
    const T *row = weight + ((size_t)rows.expert * lists.outputs + output) * inputs;
    const int count = rows.end - rows.first;
    x += (size_t)rows.first / lists.x_reuse * inputs;
    float sums[ROWS] = {};
    for (size_t first = 0; first < inputs; first += batch) {
        if (first > 0 || lists.expert)
            pieces.load(row, first, inputs, is_aligned);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < count)
                sums[i] = pieces.multiply(x + (size_t)i * inputs, first, inputs, dtype, is_aligned, sums[i]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= count)
            break;
        const float sum = warp_sum(sums[i]);
        if (threadIdx.x % WARP == 0)
            y[(size_t)(rows.first + i) * lists.outputs + output] = sum;
    }
}

template <typename T>
static void launch(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                   const row_lists &lists) {
    const unsigned tile_rows = lists.expert ? 1 : ROWS;
    const dim3 grid(blocks_for(lists.outputs, WARPS), blocks_for(lists.rows, tile_rows));
    const auto kernel = run_gemv_float<T>;
    add_launch(call->launches, "gemv_float", kernel, grid, WARPS * WARP, 0, data_of<const float>(x),
               data_of<const T>(weight), weight->dtype, weight->dims[weight->rank - 1], lists, tile_rows,
               data_of<float>(call->results[0]));
}

void gb_cuda_gemv_float_product(const gb_cuda_call *call, const gb_cuda_tensor *x,
                                const gb_cuda_tensor *weight, const row_lists &lists) {
    if (weight->dtype == GB_F32)
        launch<float>(call, x, weight, lists);
    else
        launch<uint16_t>(call, x, weight, lists);
}

void gb_cuda_gemv_float(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const gb_cuda_tensor *weight = call->operands[1];
    gb_cuda_gemv_float_product(call, call->operands[0], weight, all_rows(call));
}
