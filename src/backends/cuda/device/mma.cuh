/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensor cores' bfloat16 product of a warp: m16n8k16 with float32 sums. With r = l / 4 and t = l % 4,
 * lane l has of a [16, 16]: row r's columns 2t, 2t + 1 in a[0] and 2t + 8, 2t + 9 in a[2], row r + 8's in
 * a[1] and a[3]; of b [16, 8]: column r's rows 2t, 2t + 1 in b[0], 2t + 8, 2t + 9 in b[1]; of c [16, 8]: row
 * r's columns 2t, 2t + 1 in c[0], c[1], row r + 8's in c[2], c[3]. The lower bits hold the lower index.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_MMA_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_MMA_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* Two floats rounded to bfloat16, the first one in the lower bits. */
__device__ inline uint32_t pack_bf16(float low, float high) {
#if defined(__CUDA_ARCH__)
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return (uint32_t)gb_bf16_from_float(high) << 16 | gb_bf16_from_float(low);
#endif
}

__device__ inline float low_bf16(uint32_t both) {
    return gb_float_from_bits(both << 16);
}
__device__ inline float high_bf16(uint32_t both) {
    return gb_float_from_bits(both & 0xffff0000u);
}

/* The same of two float16. */
__device__ inline float low_half(uint32_t both) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(value) : "r"(both));
    return value;
#else
    return gb_widen_half((uint16_t)both, GB_F16);
#endif
}
__device__ inline float high_half(uint32_t both) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(both));
    return value;
#else
    return low_half(both >> 16);
#endif
}

/* Rounds two floats to bfloat16 and takes that from them: NaN of what is then infinite. */
__device__ inline uint32_t take_bf16(float *low, float *high) {
    const uint32_t both = pack_bf16(*low, *high);
    *low -= low_bf16(both);
    *high -= high_bf16(both);
    return both;
}

/* What the rounding of two floats to `both` left of them, rounded: x is their sum to 16 bits. */
__device__ inline uint32_t pack_rest(uint32_t both, float low, float high) {
    return pack_bf16(low - low_bf16(both), high - high_bf16(both));
}

/* (a & mask) | bits in one instruction, which the compiler makes two of where both are constants. */
template <uint32_t MASK, uint32_t BITS>
__device__ inline uint32_t mask_and_set(uint32_t a) {
#if defined(__CUDA_ARCH__)
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "n"(MASK), "r"(BITS));
    return result;
#else
    return (a & MASK) | BITS;
#endif
}

/* (a & mask) ^ bits, likewise. */
template <uint32_t MASK, uint32_t BITS>
__device__ inline uint32_t mask_and_flip(uint32_t a) {
#if defined(__CUDA_ARCH__)
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(a), "n"(MASK), "r"(BITS));
    return result;
#else
    return (a & MASK) ^ BITS;
#endif
}

/* a b + c of both halves, rounded once. */
__device__ inline uint32_t multiply_add_bf16(uint32_t a, uint32_t b, uint32_t c) {
#if defined(__CUDA_ARCH__)
    uint32_t both;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(c));
    return both;
#else
    return pack_bf16(fmaf(low_bf16(a), low_bf16(b), low_bf16(c)),
                     fmaf(high_bf16(a), high_bf16(b), high_bf16(c)));
#endif
}

/* The register is computed here, not later. */
__device__ inline void keep_in_place(uint32_t &value) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(value)::"memory");
#else
    (void)value;
#endif
}

/* Of eight bytes, the first four in the first word, those whose numbers are the hexadecimal digits of
 * `selected`, the first in the last one. */
__device__ inline uint32_t select_bytes(uint32_t first, uint32_t second, unsigned selected) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(first, second, selected);
#else
    const uint64_t all = (uint64_t)second << 32 | first;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++)
        result |= (uint32_t)(all >> (selected >> (i * 4) & 7) * 8 & 0xff) << i * 8;
    return result;
#endif
}

template <unsigned SELECTED>
__device__ inline uint32_t select_bytes(uint32_t first, uint32_t second) {
    return select_bytes(first, second, SELECTED);
}

/* Those with even numbers, and the others. */
__device__ inline uint32_t even_bytes(uint32_t first, uint32_t second) {
    return select_bytes<0x6420>(first, second);
}
__device__ inline uint32_t odd_bytes(uint32_t first, uint32_t second) {
    return even_bytes(first >> 8, second >> 8);
}

/* sum + the products of four bytes of each */
__device__ inline int32_t add_products_of_bytes(uint32_t a, uint32_t b, int32_t sum) {
#if defined(__CUDA_ARCH__)
    return __dp4a((int)a, (int)b, sum);
#else
    for (unsigned i = 0; i < 32; i += 8)
        sum += (int8_t)(a >> i) * (int8_t)(b >> i);
    return sum;
#endif
}

#if !defined(__CUDACC__)
/* Emulated: what the lanes that have the lane's row of a, or one of its two columns of b, have of them. */
struct fragments_of_lanes {
    uint32_t a[4][4], b[2][4][2];

    fragments_of_lanes(const uint32_t of_a[4], uint32_t b0, uint32_t b1) {
        const uint32_t mine[6] = {of_a[0], of_a[1], of_a[2], of_a[3], b0, b1};
        const uint8_t *all = emulated::exchange(mine, sizeof mine);
        const unsigned lane = emulated::lane(), row = lane / 4, column = lane % 4 * 2;
        for (unsigned i = 0; i < 4; i++) {
            memcpy(a[i], all + (row * 4 + i) * emulated::EXCHANGE_BYTES, sizeof a[i]);
            for (unsigned c = 0; c < 2; c++)
                memcpy(b[c][i], all + ((column + c) * 4 + i) * emulated::EXCHANGE_BYTES + sizeof a[i],
                       sizeof b[c][i]);
        }
    }
};
#endif

#if !defined(__CUDACC__)
/* Emulated: d = a b + c of bytes, those of a as BYTE has them. */
template <typename BYTE>
inline void add_products_of_lanes(int32_t d[4], const uint32_t a[4], uint32_t b0, uint32_t b1,
                                  const int32_t c[4]) {
    const fragments_of_lanes lanes(a, b0, b1);
    for (unsigned i = 0; i < 4; i++) {
        int32_t sum = c[i];
        for (unsigned k = 0; k < 32; k++) {
            const BYTE x = (BYTE)(lanes.a[k % 16 / 4][i / 2 + k / 16 * 2] >> (k % 4 * 8));
            sum += x * (int8_t)(lanes.b[i % 2][k % 16 / 4][k / 16] >> (k % 4 * 8));
        }
        d[i] = sum;
    }
}
#endif

/* d = a b + c of bytes, those of a unsigned: m16n8k32 with 32-bit sums. As with m16n8k16, but each word has
 * four columns of a or rows of b: 4t .. 4t + 3, and 4t + 16 .. in the second ones. */
__device__ inline void multiply_add_bytes(int32_t d[4], const uint32_t a[4], uint32_t b0, uint32_t b1,
                                          const int32_t c[4]) {
#if defined(__CUDACC__)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]),
          "r"(c[3]));
#else
    add_products_of_lanes<uint8_t>(d, a, b0, b1, c);
#endif
}

/* c += a b, all signed. */
__device__ inline void multiply_add_signed_bytes(int32_t c[4], const uint32_t a[4], uint32_t b0,
                                                 uint32_t b1) {
#if defined(__CUDACC__)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    add_products_of_lanes<int8_t>(c, a, b0, b1, c);
#endif
}

/* c += a b */
__device__ inline void multiply_add(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
#if defined(__CUDACC__)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    const fragments_of_lanes lanes(a, b0, b1);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < 16; k += 2) {
            const uint32_t x = lanes.a[k % 8 / 2][i / 2 + k / 8 * 2], y = lanes.b[i % 2][k % 8 / 2][k / 8];
            c[i] += low_bf16(x) * low_bf16(y);
            c[i] += high_bf16(x) * high_bf16(y);
        }
    }
#endif
}

} // namespace gb_cuda

#endif
