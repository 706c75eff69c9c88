/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared rows: activations in the layouts that tensor cores read. They are rounded to bfloat16, in units of
 * 32 columns, the last one filled with zeros. Quarter t of a unit has 8 columns as four pairs: pair i is
 * columns i and i + 4 of the quarter, as a word of codes has them.
 *
 * By rows, for GEMV: a quarter's pairs stand in 16 bytes; beside them are the sums of every 16 rounded
 * columns.
 *
 * By rows in 8 bits (activation quantization): a pair of units has 64 bytes; of each quarter the first unit's
 * even columns, then its odd ones, then the second unit's; beside them each group's scale, and its scale
 * times the sum of its integers.
 *
 * By pairs of units, for wgmma_tile.cuh: the rows of the first pair of units, then those of the second and so
 * on. A row of a pair is 128 bytes; a unit's part is pair 0 of the four quarters, then pairs 1, 2 and 3; its
 * 16-byte pieces are swizzled as wgmma.cuh says. In two terms: each pair's rows twice, rounded, and the
 * rounded rest.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_PREPARED_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_PREPARED_CUH

#include "backends/cuda/device/mma.cuh"

namespace gb_cuda {

enum { UNIT = 32, UNIT_WORDS = UNIT / 2, PAIR_COLUMNS = 2 * UNIT, PAIR_WORDS = 2 * UNIT_WORDS };

struct prepared_rows {
    /* [rows, units, UNIT_WORDS], or [units / 2, pair_rows, PAIR_WORDS], with the rest
     * [units / 2, 2, pair_rows, PAIR_WORDS]; NULL: nowhere */
    uint32_t *values;
    float *sums; /* [rows, units, 2]; by pairs of units there are none */
    size_t units;
    size_t pair_rows; /* the number of rows, a multiple of 8, of the layout by pairs of units; 0: by rows */
    size_t group;  /* 64 or more columns divide: they are rounded to 8 bits in groups of that many; 0: not */
    bool has_rest; /* by pairs of units: beside the rows stands what rounding left */

    /* Whether rows are prepared at all; while kernels are chosen there is no memory for them yet. */
    bool is_there() const {
        return units > 0;
    }
};

/* The size of the largest of the numbers that 2, 4, .. neighbouring lanes have; NaN if there is one. */
__device__ inline uint32_t largest_of_lanes(uint32_t magnitude, unsigned lanes) {
    for (unsigned distance = 1; distance < lanes; distance *= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, magnitude, (int)distance);
        magnitude = magnitude < other ? other : magnitude;
    }
    return magnitude;
}

/* v / divisor, rounded as a division's result is, for many v: reciprocal is 1 / divisor. Exact where nothing
 * underflows. (Markstein) */
__device__ inline float quotient(float v, float divisor, float reciprocal) {
    float q = v * reciprocal;
    q = fmaf(fmaf(-q, divisor, v), reciprocal, q);
    return fmaf(fmaf(-q, divisor, v), reciprocal, q);
}

/* Columns in 8 bits: their even ones and their odd ones; their group's scale, and the scale times the sum of
 * the group's integers. */
struct byte_columns {
    uint32_t words[2];
    float scale, sum;
};

/* Rounds EACH = 2, 4 or 8 columns to 8 bits, as the CPU's kernels do; so many neighbouring lanes have the
 * group's columns. A whole warp calls it. */
template <int EACH>
__device__ inline byte_columns round_to_bytes(const float *v, unsigned lanes) {
    uint32_t magnitude = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const uint32_t of_one = gb_float_bits(v[i]) & 0x7fffffffu;
        magnitude = magnitude < of_one ? of_one : magnitude;
    }
    magnitude = largest_of_lanes(magnitude, lanes);
    const float largest = gb_float_from_bits(magnitude);
    float scale = magnitude >= 0x7f800000u ? gb_float_from_bits(0x7fc00000u) : largest / 127.0f;
    scale = scale < 0x1p-126f ? 0.0f : scale;
    const bool has_codes = scale > 0;
    const float enlarged = scale < 0x1p-90f ? 0x1p+60f : 1.0f, divisor = has_codes ? scale * enlarged : 1.0f;
    const float reciprocal = 1.0f / divisor;
    byte_columns rounded = {{0, 0}, scale, 0};
    int sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const float ratio = quotient(v[i] * enlarged, divisor, reciprocal);
        const int code = has_codes ? (int)(gb_float_bits(ratio + 0x1.8p+23f) - 0x4b400000u) : 0;
        rounded.words[i % 2] |= ((uint32_t)code & 0xffu) << (i / 2 * 8);
        sum += code;
    }
    for (unsigned distance = 1; distance < lanes; distance *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, (int)distance);
    rounded.sum = scale * (float)sum;
    return rounded;
}

/* Rounds and stores EACH columns from `column` on. The lanes of a warp have the columns that follow (zeros
 * past the row's end), and a group's lie in one warp; a whole warp calls it. */
template <int EACH>
__device__ inline void store_in_bytes(const prepared_rows &to, size_t row, unsigned column, const float *v) {
    const unsigned group = (unsigned)to.group;
    const byte_columns rounded = round_to_bytes<EACH>(v, group / EACH);
    if (column >= to.units * UNIT)
        return;
    const unsigned unit = column / UNIT, quarter = column / 8 % 4;
    uint8_t *at = reinterpret_cast<uint8_t *>(to.values) + row * to.units * UNIT +
                  (unit / 2 * 8 + quarter * 2 + unit % 2) * 8 + column % 8 / 2;
    if (EACH == 8) {
        *reinterpret_cast<uint2 *>(at) = uint2{rounded.words[0], rounded.words[1]};
    } else if (EACH == 4) {
        *reinterpret_cast<uint16_t *>(at) = (uint16_t)rounded.words[0];
        *reinterpret_cast<uint16_t *>(at + 4) = (uint16_t)rounded.words[1];
    } else {
        at[0] = (uint8_t)rounded.words[0];
        at[4] = (uint8_t)rounded.words[1];
    }
    if (column % group == 0)
        reinterpret_cast<float2 *>(to.sums)[(row * to.units * UNIT + column) / group] =
            float2{rounded.scale, rounded.sum};
}

/* Stores a quarter's pairs in the layout by pairs of units. */
__device__ inline void store_in_pair(const prepared_rows &to, size_t row, size_t quarter,
                                     const uint32_t pairs[4]) {
    const size_t unit = quarter / 4;
    uint32_t *words = to.values + (unit / 2 * to.pair_rows + row) * PAIR_WORDS;
    for (size_t i = 0; i < 4; i++)
        words[((unit % 2 * 4 + i) ^ row % 8) * 4 + quarter % 4] = pairs[i];
}

/* Prepares a quarter of a unit, numbered along the row, from its columns (zeros past the row's end). Lanes 2i
 * and 2i + 1 of a warp have neighbouring quarters; a whole warp calls it. */
__device__ inline void prepare_quarter(const prepared_rows &to, size_t row, size_t quarter,
                                       const float v[8]) {
    if (to.group > 0)
        return store_in_bytes<8>(to, row, (unsigned)quarter * 8, v);
    const uint32_t pairs[4] = {pack_bf16(v[0], v[4]), pack_bf16(v[1], v[5]), pack_bf16(v[2], v[6]),
                               pack_bf16(v[3], v[7])};
    if (to.pair_rows > 0) {
        if (quarter < to.units * 4)
            store_in_pair(to, row, quarter, pairs);
        return;
    }
    float sum = ((low_bf16(pairs[0]) + high_bf16(pairs[0])) + (low_bf16(pairs[1]) + high_bf16(pairs[1]))) +
                ((low_bf16(pairs[2]) + high_bf16(pairs[2])) + (low_bf16(pairs[3]) + high_bf16(pairs[3])));
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (quarter >= to.units * 4)
        return;
    const uint4 packed = {pairs[0], pairs[1], pairs[2], pairs[3]};
    reinterpret_cast<uint4 *>(to.values)[row * to.units * 4 + quarter] = packed;
    if (quarter % 2 == 0)
        to.sums[row * to.units * 2 + quarter / 2] = sum;
}

/* Prepares four columns from `column` on, where they are there. The lanes of a warp have the columns that
 * follow; a whole warp calls it. */
__device__ inline void prepare_four(const prepared_rows &to, size_t row, unsigned column, bool is_there,
                                    const float y[4]) {
    const unsigned lane = threadIdx.x % WARP, none = (unsigned)to.units * UNIT;
    if (to.group > 0)
        return store_in_bytes<4>(to, row, is_there ? column : none, y);
    float v[8];
    for (unsigned i = 0; i < 8; i++)
        v[i] = __shfl_sync(0xffffffffu, y[i % 4], (int)(lane * 2 % WARP + i / 4));
    const unsigned first = __shfl_sync(0xffffffffu, is_there ? column : none, (int)(lane * 2 % WARP));
    prepare_quarter(to, row, (lane < WARP / 2 ? first : none) / 8, v);
}

} // namespace gb_cuda

/* Where and how a call's epilogue prepares its result; nowhere where it has none, or one that rounds rows
 * (gemm/int8/rows.cuh). */
gb_cuda::prepared_rows gb_cuda_epilogue_rows(const gb_cuda_call *call);

/* The columns of the rows that an epilogue prepares. */
inline size_t gb_cuda_epilogue_columns(const gb_cuda_call *call) {
    const gb_cuda_tensor *as = call->epilogue->as;
    return as->dims[as->rank - 1];
}

/* The input of a product, which is prepared by a launch that is added unless one before has stored it. */
gb_cuda::prepared_rows gb_cuda_prepare(const gb_cuda_call *product);

/* Prepares for each entry of the lists its row of x by pairs of units in the memory of `to`; entries of -1
 * are left out. */
void gb_cuda_prepare_entries(const gb_cuda_call *call, const gb_cuda_tensor *x, const int32_t *order,
                             size_t entries, size_t x_reuse, const gb_cuda::prepared_rows &to);

#endif
