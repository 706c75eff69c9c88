/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of gemv_rows.cuh, parts of which gemv_one_row.cuh and the experts share: a warp's groups of
 * a block of 16 outputs times inputs in shared memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMV_MULTIPLY_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMV_MULTIPLY_CUH

#include "backends/cuda/gemm/gemv.cuh"

namespace gb_cuda {

/* The k-th pair of a lane's eight codes, of columns k and k + 4, as bfloat16. */
template <int BITS>
__device__ inline uint32_t code_pair(const uint32_t *w, int k, float center) {
    if (BITS == 4)
        return mask_and_set<0x000f000fu, 0x43004300u>(w[0] >> (4 * k));
    const float first = gb_float_from_bits((w[0] >> (8 * k) & 0xffu) | 0x4b000000u) - center;
    const float second = gb_float_from_bits((w[1] >> (8 * k) & 0xffu) | 0x4b000000u) - center;
    return gb_float_bits(first) >> 16 | (gb_float_bits(second) & 0xffff0000u);
}

/* A lane's eight codes as bytes: those of even columns, and those of odd ones. */
template <int BITS>
__device__ inline void code_bytes(const uint32_t *w, uint32_t *even, uint32_t *odd) {
    *even = BITS == 4 ? w[0] & 0x0f0f0f0fu : even_bytes(w[0], w[1]);
    *odd = BITS == 4 ? w[0] >> 4 & 0x0f0f0f0fu : odd_bytes(w[0], w[1]);
}

/* Integer sums of a lane's part of one or more groups, of codes times 8-bit inputs. The accumulator starts
 * at a number whose bits, read as a float, are 3 * 2^22, so that sums of up to 22 bits are floats but for
 * that. APART: 4-bit codes of odd columns stay in the upper half of a byte, sixteen times as large, and
 * have sums of their own. */
template <typename Shape, bool APART>
struct byte_sums {
    typedef Shape shape;
    static constexpr bool IS_APART = APART && shape::BITS == 4 && shape::GROUP_UNITS % 2 == 0;
    static constexpr int32_t BITS_OF_BASE = 0x4b400000;
    static constexpr float BASE = 12582912.0f;

    int32_t all[4] = {BITS_OF_BASE, BITS_OF_BASE, BITS_OF_BASE, BITS_OF_BASE}; /* apart: even columns */
    int32_t odd[4] = {BITS_OF_BASE, BITS_OF_BASE, BITS_OF_BASE, BITS_OF_BASE};

    /* Adds the group of an atom's units u .., whose codes are w; chunk(i): the lane's inputs of its i-th pair
     * of units. */
    template <typename Chunk>
    __device__ void add(const uint32_t w[shape::ATOM_STEPS][4], int u, const Chunk &chunk) {
        if (IS_APART)
            return add_pairs(w, u, chunk);
        uint4 b = {0, 0, 0, 0};
#pragma unroll
        for (int i = u; i < u + shape::GROUP_UNITS; i++) {
            const uint32_t *of_r = w[i / shape::STEP_UNITS] + i % shape::STEP_UNITS * 2;
            uint32_t a[4];
            code_bytes<shape::BITS>(of_r, &a[0], &a[2]);
            code_bytes<shape::BITS>(of_r + shape::BITS / 4, &a[1], &a[3]);
            if (i == u || i % 2 == 0)
                b = chunk(i / 2);
            multiply_add_bytes(all, a, i % 2 ? b.z : b.x, i % 2 ? b.w : b.y, all);
        }
    }

    template <typename Chunk>
    __device__ void add_pairs(const uint32_t w[shape::ATOM_STEPS][4], int u, const Chunk &chunk) {
#pragma unroll
        for (int i = u; i < u + shape::GROUP_UNITS; i += 2) {
            uint32_t low[4], high[4];
            for (int k = 0; k < 4; k++) {
                low[k] = w[i / 2 % shape::ATOM_STEPS][k] & 0x0f0f0f0fu;
                high[k] = w[i / 2 % shape::ATOM_STEPS][k] & 0xf0f0f0f0u;
            }
            const uint4 b = chunk(i / 2);
            multiply_add_bytes(all, low, b.x, b.z, all);
            multiply_add_bytes(odd, high, b.y, b.w, odd);
        }
    }

    /* The i-th sum; nothing of it is rounded. */
    __device__ float sum(int i) const {
        if (!IS_APART)
            return gb_float_from_bits((uint32_t)all[i]) - BASE;
        return fmaf(gb_float_from_bits((uint32_t)odd[i]), 0.0625f, gb_float_from_bits((uint32_t)all[i])) -
               BASE * 1.0625f;
    }
};

/* The lane's codes of an atom, of rows r and r + 8. */
template <typename Shape>
__device__ inline void load_codes(const uint8_t *from, uint32_t w[Shape::ATOM_STEPS][4]) {
#pragma unroll
    for (int s = 0; s < Shape::ATOM_STEPS; s++) {
        const uint4 loaded = *reinterpret_cast<const uint4 *>(from + s * Shape::STEP_BYTES);
        w[s][0] = loaded.x;
        w[s][1] = loaded.y;
        w[s][2] = loaded.z;
        w[s][3] = loaded.w;
    }
}

/* Scales or biases of the lane's rows r and r + 8. */
template <bool IS_BF16>
__device__ inline void widen_halves(uint32_t both, float value[2]) {
    value[0] = IS_BF16 ? low_bf16(both) : low_half(both);
    value[1] = IS_BF16 ? high_bf16(both) : high_half(both);
}

/* A group's value, of inputs in 8 bits. of_inputs: their scale, and its product with their sum; sum: of codes
 * and inputs. */
__device__ inline float value_of_bytes(float scale, float bias, const float2 &of_inputs, float sum) {
    return fmaf(scale, of_inputs.x * sum, bias * of_inputs.y);
}

/* Where a lane's share of some atoms is in shared memory. */
template <int TILES>
struct few_sources {
    const uint8_t *codes, *scales, *biases;
    const uint8_t *x[TILES];
    const float *sums;
};

template <typename Shape, int TILES>
struct gemv_multiply {
    typedef Shape shape;
    typedef few_sources<TILES> sources;
    static constexpr bool IN_BYTES = shape::IN_BYTES;
    static constexpr int BITS = shape::BITS;
    static constexpr int ATOM_SUMS = shape::ATOM_GROUPS * TILES * GEMV_COLUMNS * shape::SUM_FLOATS;

    float offset;

    /* y = the values of a group of a column tile. of_group: the scales and sums of its inputs; sum: of codes
     * and inputs. */
    __device__ static void find_values(const float scale[2], const float bias[2], const float *of_group,
                                       const float sum[4], float y[4]) {
        if (IN_BYTES) {
            const float4 f = *reinterpret_cast<const float4 *>(of_group);
            for (int i = 0; i < 4; i++)
                y[i] = value_of_bytes(scale[i / 2], bias[i / 2], i % 2 ? float2{f.z, f.w} : float2{f.x, f.y},
                                      sum[i]);
        } else {
            const float2 f = *reinterpret_cast<const float2 *>(of_group);
            for (int i = 0; i < 4; i++)
                y[i] = fmaf(scale[i / 2], sum[i], bias[i / 2] * (i % 2 ? f.y : f.x));
        }
    }

    /* The sums of the group of an atom's units u .., whose codes are w, with inputs from `from` on. */
    __device__ static void multiply_bytes(const uint32_t w[shape::ATOM_STEPS][4], int u, const uint8_t *from,
                                          float sum[4]) {
        byte_sums<shape, false> sums;
        sums.add(w, u, [&](int i) { return *reinterpret_cast<const uint4 *>(from + i * CHUNK_BYTES); });
        for (int i = 0; i < 4; i++)
            sum[i] = sums.sum(i);
    }

    /* The same with inputs in bfloat16. */
    __device__ void multiply_bf16(const uint32_t w[shape::ATOM_STEPS][4], int u, const uint8_t *from,
                                  float sum[4]) const {
        const float center = 8388608.0f + offset;
        for (int i = 0; i < 4; i++)
            sum[i] = 0;
#pragma unroll
        for (int i = u; i < u + shape::GROUP_UNITS; i++) {
            const uint32_t *of_r = w[i / shape::STEP_UNITS] + i % shape::STEP_UNITS * 2;
            const uint32_t *of_r8 = of_r + BITS / 4;
            const uint4 b = *reinterpret_cast<const uint4 *>(from + i * CHUNK_BYTES);
#pragma unroll
            for (int k = 0; k < 4; k += 2) {
                const uint32_t a[4] = {code_pair<BITS>(of_r, k, center), code_pair<BITS>(of_r8, k, center),
                                       code_pair<BITS>(of_r, k + 1, center),
                                       code_pair<BITS>(of_r8, k + 1, center)};
                multiply_add(sum, a, k ? b.z : b.x, k ? b.w : b.y);
            }
        }
    }

    /* y = the i-th atom from `at` on: of its groups, the sum. */
    __device__ void multiply_atom(const sources &at, int i, float y[TILES][4]) const {
        uint32_t w[shape::ATOM_STEPS][4];
        load_codes<shape>(at.codes + i * shape::CODE_BYTES, w);
#pragma unroll
        for (int g = 0; g < shape::ATOM_GROUPS; g++) {
            const int of_group = i * shape::SCALE_BYTES + g * shape::GROUP_BYTES;
            float scale[2], bias[2] = {0, 0}, sum[4], values[4];
            widen_halves<shape::IS_BF16>(*reinterpret_cast<const uint32_t *>(at.scales + of_group), scale);
            if (shape::HAS_BIASES)
                widen_halves<shape::IS_BF16>(*reinterpret_cast<const uint32_t *>(at.biases + of_group), bias);
            for (int half = 0; half < 2; half++)
                if (IN_BYTES ? !shape::HAS_BIASES : BITS == 4) /* others are not above the format's */
                    bias[half] = fmaf(-offset, scale[half], bias[half]);
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                const uint8_t *x = at.x[c] + i * shape::INPUT_BYTES;
                const float *sums =
                    at.sums + i * ATOM_SUMS + (g * TILES + c) * GEMV_COLUMNS * shape::SUM_FLOATS;
                if (IN_BYTES)
                    multiply_bytes(w, g * shape::GROUP_UNITS, x, sum);
                else
                    multiply_bf16(w, g * shape::GROUP_UNITS, x, sum);
                find_values(scale, bias, sums, sum, values);
                for (int j = 0; j < 4; j++)
                    y[c][j] = g == 0 ? values[j] : y[c][j] + values[j];
            }
        }
    }

    /* y = COUNT atoms from number i on, added by twos. Those from `count` on are none, where not ALL are. */
    template <int COUNT, bool ALL>
    __device__ void multiply_atoms(const sources &at, int i, int count, float y[TILES][4]) const {
        if constexpr (COUNT == 1) {
            if (ALL || i < count) {
                multiply_atom(at, i, y);
            } else {
                for (int e = 0; e < TILES * 4; e++)
                    y[e / 4][e % 4] = 0;
            }
        } else {
            float right[TILES][4] = {};
            multiply_atoms<COUNT / 2, ALL>(at, i, count, y);
            multiply_atoms<COUNT / 2, ALL>(at, i + COUNT / 2, count, right);
            for (int e = 0; e < TILES * 4; e++)
                y[e / 4][e % 4] += right[e / 4][e % 4];
        }
    }

    /* y = a part of so many atoms. */
    __device__ void multiply_part(const sources &at, uint32_t count, float y[TILES][4]) const {
        if (count == shape::PART_ATOMS)
            multiply_atoms<shape::PART_ATOMS, true>(at, 0, 0, y);
        else
            multiply_atoms<shape::PART_ATOMS, false>(at, 0, (int)count, y);
    }
};

} // namespace gb_cuda

#endif
