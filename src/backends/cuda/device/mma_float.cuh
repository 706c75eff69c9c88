/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of float32 numbers on tensor cores, which have 11 bits of each (tf32, m16n8k8): a number is the
 * sum of two of these, and three of the four products count. (Ootomo and Yokota, "Recovering single precision
 * accuracy from tensor cores", 2022)
 *
 * Rows and columns are numbered so that a lane's are neighbours: of sixteen, number i of the first eight is
 * 2i, of the others 2i + 1. With g = l / 4 and t = l % 4, lane l has of a [16, 16]: rows 2g and 2g + 1,
 * columns 4t .. 4t + 3; of b [16, 16], of which a column is as long as a row of a: columns 2g and 2g + 1,
 * rows 4t .. 4t + 3; of c [16, 16] what mma.cuh says of two tiles, the second of odd columns: rows 2g, 2g +
 * 1, columns 4t .. 4t + 3.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_MMA_FLOAT_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_MMA_FLOAT_CUH

#include "backends/cuda/device/mma.cuh"

namespace gb_cuda {

#if !defined(__CUDACC__)
/* Tensor cores cut off what a float32 does not hold. */
inline float toward_zero(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(((uint64_t)1 << 29) - 1);
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}
#endif

/* c += a b of the upper 19 bits. With t = l % 4, lane l has of a [16, 8]: row l / 4's columns t and t + 4 in
 * a[0] and a[2], row l / 4 + 8's in a[1] and a[3]; of b [8, 8]: column l / 4's rows t and t + 4; of c as in
 * mma.cuh. */
__device__ inline void multiply_add_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
#if defined(__CUDACC__)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    const fragments_of_lanes lanes(a, b0, b1);
    for (unsigned i = 0; i < 4; i++) {
        double sum = c[i];
        for (unsigned k = 0; k < 8; k++) {
            sum += (double)gb_float_from_bits(lanes.a[k % 4][i / 2 + k / 4 * 2] & 0xffffe000u) *
                   gb_float_from_bits(lanes.b[i % 2][k % 4][k / 4] & 0xffffe000u);
        }
        c[i] = toward_zero(sum);
    }
#endif
}

/* A number is their sum, but for the last bit of 24. */
struct float_parts {
    uint32_t high, low;
};

__device__ inline float_parts split(float x) {
    const uint32_t high = (gb_bits_from_float(x) + 0x1000u) & 0xffffe000u;
    return {high, gb_bits_from_float(x - gb_float_from_bits(high))};
}

/* What a lane has of a row of a or a column of b: four neighbours. */
struct four_parts {
    float_parts of[4];

    __device__ four_parts() {}
    __device__ four_parts(const float4 &x) : of{split(x.x), split(x.y), split(x.z), split(x.w)} {}
};

/* A lane's of a. */
struct operand_parts {
    four_parts even, odd; /* row 2g, row 2g + 1 */
};

/* A lane's sums of one tile of c. Tensor cores cut off what does not fit, so they add up the large products
 * of sixteen columns only, and all small ones. */
struct tile_sums {
    float high[4], low[4];

    /* Adds the product of a and the column of b that is the lane's in this tile. */
    __device__ void add(const operand_parts &a, const four_parts &b) {
        float large[4] = {};
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const uint32_t a_high[4] = {a.even.of[k].high, a.odd.of[k].high, a.even.of[k + 2].high,
                                        a.odd.of[k + 2].high};
            const uint32_t a_low[4] = {a.even.of[k].low, a.odd.of[k].low, a.even.of[k + 2].low,
                                       a.odd.of[k + 2].low};
            multiply_add_tf32(low, a_low, b.of[k].high, b.of[k + 2].high);
            multiply_add_tf32(low, a_high, b.of[k].low, b.of[k + 2].low);
            multiply_add_tf32(large, a_high, b.of[k].high, b.of[k + 2].high);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            high[i] += large[i];
    }

    __device__ float operator[](int i) const {
        return high[i] + low[i];
    }
};

/* A lane's of c: columns 4t .. 4t + 3. */
struct block_sums {
    float4 even, odd; /* row 2g, row 2g + 1 */

    __device__ block_sums() {}
    __device__ block_sums(const float4 &of_even, const float4 &of_odd) : even(of_even), odd(of_odd) {}
    __device__ block_sums(const tile_sums tiles[2])
        : even{tiles[0][0], tiles[1][0], tiles[0][1], tiles[1][1]}, odd{tiles[0][2], tiles[1][2], tiles[0][3],
                                                                        tiles[1][3]} {}

    __device__ void add(const block_sums &x) {
        even = {even.x + x.even.x, even.y + x.even.y, even.z + x.even.z, even.w + x.even.w};
        odd = {odd.x + x.odd.x, odd.y + x.odd.y, odd.z + x.odd.z, odd.w + x.odd.w};
    }

    /* Each column by its own number. */
    __device__ void multiply(const float4 &by) {
        even = {even.x * by.x, even.y * by.y, even.z * by.z, even.w * by.w};
        odd = {odd.x * by.x, odd.y * by.y, odd.z * by.z, odd.w * by.w};
    }

    /* The same as an operand a. */
    __device__ operand_parts parts() const {
        return {four_parts(even), four_parts(odd)};
    }
};

} // namespace gb_cuda

#endif
