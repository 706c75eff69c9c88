/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs of float16, and tensor-core products of them with float32 sums, as those of bfloat16 in mma.cuh.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_MMA_HALF_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_MMA_HALF_CUH

#include "backends/cuda/device/mma.cuh"

namespace gb_cuda {

/* Two floats rounded to float16, the first one in the lower bits. */
__device__ inline uint32_t pack_half(float low, float high) {
#if defined(__CUDA_ARCH__)
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return (uint32_t)gb_f16_from_float(high) << 16 | gb_f16_from_float(low);
#endif
}

/* a + b of both halves, rounded once. */
__device__ inline uint32_t add_half(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    uint32_t both;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));
    return both;
#else
    return pack_half(low_half(a) + low_half(b), high_half(a) + high_half(b));
#endif
}

/* (a & mask) ^ bits in one instruction, which the compiler makes two of where both are constants. */
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

/* Codes in bytes 0 and 2 of a word as float16, which hold them exactly: the byte of 1024 + .. is the code and
 * 128. */
__device__ inline uint32_t widen_to_half(uint32_t bytes) {
    return add_half(mask_and_flip<0x00ff00ff, 0x64806480>(bytes), 0xe480e480);
}

/* c += a b */
__device__ inline void multiply_add_half(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
#if defined(__CUDACC__)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    const fragments_of_lanes lanes(a, b0, b1);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < 16; k += 2) {
            const uint32_t x = lanes.a[k % 8 / 2][i / 2 + k / 8 * 2], y = lanes.b[i % 2][k % 8 / 2][k / 8];
            c[i] += low_half(x) * low_half(y);
            c[i] += high_half(x) * high_half(y);
        }
    }
#endif
}

} // namespace gb_cuda

#endif
