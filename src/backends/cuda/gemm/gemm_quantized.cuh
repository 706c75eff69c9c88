/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM with a quantized matrix of any format on tensor cores (m16n8k16): 16 rows of the matrix are the first
 * operand, 8 prepared rows the second. With codes q (of 4 bits: q + 128, which bfloat16 holds in its low
 * bits; of other bits: less their center; with a book: its integers), xsum the sum of a group's inputs and
 * sum that of its products,
 *
 *     y = y + (bias - offset * scale) * xsum, then y = y + scale * sum,
 *
 * for each group in the order of k. The groups are cut into PARTS ranges, whose sums are added in order.
 * Kernels for few rows and for many compute just that, so they have the same bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMM_QUANTIZED_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMM_QUANTIZED_CUH

#include "backends/cuda/gemm/codes.cuh"
#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

enum { PARTS = 8, TILE_ROWS = 16, TILE_COLUMNS = 8 };

/* What is constant over a product. */
struct product {
    quantized_matrix matrix;
    prepared_rows x;
    size_t groups;        /* steps of the sum: groups, or units where a row has one scale */
    unsigned group_units; /* units of one of them; 0: a group is half a unit */
    bool has_row_scale;
};

/* The first of a part's groups, whole units of them. */
__device__ inline size_t part_begin(const product &p, unsigned part) {
    return p.group_units ? p.groups * part / PARTS : p.x.units * part / PARTS * 2;
}

/* The BITS of a kernel for codes with a book are so many more. */
enum { BY_BOOK = 16 };

/* What is constant of a matrix's codes. */
struct code_meaning {
    int center;
    gb_book_bytes book;
};

__device__ inline code_meaning meaning_of(const gb_format &format) {
    code_meaning meaning;
    meaning.center = code_center(format);
    meaning.book = gb_book_integers(format.book);
    return meaning;
}

template <int KIND>
__device__ inline float integer_of(const code_meaning &meaning, int code) {
    return (float)(KIND >= BY_BOOK ? gb_book_integer(meaning.book, (uint32_t)code) : code - meaning.center);
}

/* Eight codes as four pairs (i, i + 4) of bfloat16. */
template <int KIND>
__device__ inline void load_codes(const uint8_t *at, const code_meaning &meaning, uint32_t pairs[4]) {
    constexpr int BITS = KIND % BY_BOOK;
    if (KIND == 4) {
        const uint32_t word = *reinterpret_cast<const uint32_t *>(at);
        for (int i = 0; i < 4; i++)
            pairs[i] = (word >> (4 * i) & 0x000f000fu) | 0x43004300u;
        return;
    }
    uint64_t bits = 0;
    if (BITS == 8 && reinterpret_cast<uintptr_t>(at) % 8 == 0) {
        bits = *reinterpret_cast<const uint64_t *>(at);
    } else {
        for (int i = 0; i < BITS; i++)
            bits |= (uint64_t)at[i] << (8 * i);
    }
    const uint64_t mask = (1u << BITS) - 1;
    for (int i = 0; i < 4; i++) {
        const int low = (int)(bits >> (BITS * i) & mask), high = (int)(bits >> (BITS * (i + 4)) & mask);
        pairs[i] = gb_float_bits(integer_of<KIND>(meaning, low)) >> 16 |
                   (gb_float_bits(integer_of<KIND>(meaning, high)) & 0xffff0000u);
    }
}

/* Rows and columns of one warp: ROW_TILES * 16 rows of the matrix, COLUMN_TILES * 8 prepared rows. */
template <int KIND, int ROW_TILES, int COLUMN_TILES>
struct product_tile {
    static constexpr int BITS = KIND % BY_BOOK;
    const uint8_t *codes[ROW_TILES][2]; /* of the lane's rows, r and r + 8, its quarter of unit 0 */
    size_t rows[ROW_TILES][2];
    const uint32_t *values[COLUMN_TILES]; /* of the lane's prepared row as b, r; NULL: zeros */
    const float *sums[COLUMN_TILES][2];   /* of those as c, 2t and 2t + 1; NULL: zeros */
    float group[ROW_TILES][COLUMN_TILES][4];
    float xsum[COLUMN_TILES][2];

    __device__ void set_row(int tile, int which, const product &p, size_t row) {
        rows[tile][which] = row;
        const unsigned quarter = threadIdx.x % 4;
        codes[tile][which] = p.matrix.is_packed
                                 ? packed_codes(p.matrix, row, 0, quarter)
                                 : plane_row(p.matrix, p.matrix.planes.codes, row) + quarter * BITS;
    }

    __device__ void set_column(int tile, const product &p, bool is_there, size_t row) {
        values[tile] = is_there ? p.x.values + row * p.x.units * UNIT_WORDS : nullptr;
    }

    __device__ void set_sum(int tile, int which, const product &p, bool is_there, size_t row) {
        sums[tile][which] = is_there ? p.x.sums + row * p.x.units * 2 : nullptr;
    }

    __device__ void begin_group() {
#pragma unroll
        for (int c = 0; c < COLUMN_TILES; c++) {
            xsum[c][0] = xsum[c][1] = 0;
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    group[r][c][i] = 0;
        }
    }

    /* Adds the products of a unit; of its half only (0 or 1) where that is not negative. */
    __device__ void add_unit(size_t unit, int half, const code_meaning &meaning, bool is_packed) {
        const unsigned quarter = threadIdx.x % 4;
        const size_t at = !is_packed  ? unit * 4 * BITS
                          : BITS == 4 ? unit / 2 * 512 + unit % 2 * 8
                                      : unit * 512;
        const bool is_outside = half >= 0 && (int)quarter / 2 != half;
        uint32_t a[ROW_TILES][2][4];
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int which = 0; which < 2; which++) {
                load_codes<KIND>(codes[r][which] + at, meaning, a[r][which]);
                for (int i = 0; is_outside && i < 4; i++)
                    a[r][which][i] = 0;
            }
#pragma unroll
        for (int c = 0; c < COLUMN_TILES; c++) {
            uint4 b = {0, 0, 0, 0};
            if (values[c])
                b = *reinterpret_cast<const uint4 *>(values[c] + unit * UNIT_WORDS + quarter * 4);
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                const uint32_t first[4] = {a[r][0][0], a[r][1][0], a[r][0][1], a[r][1][1]};
                const uint32_t second[4] = {a[r][0][2], a[r][1][2], a[r][0][3], a[r][1][3]};
                multiply_add(group[r][c], first, b.x, b.y);
                multiply_add(group[r][c], second, b.z, b.w);
            }
#pragma unroll
            for (int which = 0; which < 2; which++) {
                if (!sums[c][which])
                    continue;
                const float *of_unit = sums[c][which] + unit * 2;
                xsum[c][which] += half < 0 ? of_unit[0] + of_unit[1] : of_unit[half];
            }
        }
    }

    /* y += the group's products and its bias. */
    __device__ void end_group(const product &p, size_t number, float y[ROW_TILES][COLUMN_TILES][4]) {
        const float offset = KIND == 4 ? (float)(128 + code_center(p.matrix.format)) : 0.0f;
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int which = 0; which < 2; which++) {
                const gb_affine affine = affine_of(p.matrix, rows[r][which], p.has_row_scale ? 0 : number);
                const float bias = affine.bias - offset * affine.scale;
#pragma unroll
                for (int c = 0; c < COLUMN_TILES; c++)
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        float &sum = y[r][c][which * 2 + i];
                        sum = fmaf(bias, xsum[c][i], sum);
                        sum = fmaf(affine.scale, group[r][c][which * 2 + i], sum);
                    }
            }
    }

    /* y += groups begin .. end - 1. UNITS: units of a group, or 0 where that is known at run time. */
    template <int UNITS>
    __device__ void add_groups(const product &p, size_t begin, size_t end,
                               float y[ROW_TILES][COLUMN_TILES][4]) {
        const code_meaning meaning = meaning_of(p.matrix.format);
        const size_t units = UNITS ? UNITS : p.group_units;
#pragma unroll 2
        for (size_t g = begin; g < end; g++) {
            begin_group();
            if (UNITS == 0 && units == 0)
                add_unit(g / 2, (int)(g % 2), meaning, p.matrix.is_packed);
            for (size_t u = 0; u < units; u++)
                add_unit(g * units + u, -1, meaning, p.matrix.is_packed);
            end_group(p, g, y);
        }
    }
};

inline product product_of(const gb_cuda_tensor *weight, const prepared_rows &x) {
    product p = {};
    p.matrix = matrix_of(weight);
    p.x = x;
    p.has_row_scale = weight->format.group == 0;
    p.group_units = p.has_row_scale ? 1 : weight->format.group / UNIT;
    p.groups = p.has_row_scale ? x.units : weight->dims[weight->rank - 1] / weight->format.group;
    return p;
}

} // namespace gb_cuda

#endif
