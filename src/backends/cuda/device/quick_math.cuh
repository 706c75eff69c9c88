/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions with fewer instructions than those of backends/math.h, for kernels that need not have the CPU's
 * bits. Each says how far it is off.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_QUICK_MATH_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_QUICK_MATH_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* Within a few bits. */
__device__ inline float approximate_reciprocal(float x) {
#if defined(__CUDACC__)
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

constexpr float LOG2_E = 0x1.715476p+0f;

/* 2^x within 2 units in the last place; 0 at -inf. */
__device__ inline float exp2_fast(float x) {
#if defined(__CUDACC__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* x / (1 + 2^y) within a few units in the last place, beside what the rounding of y makes of it, |y| / 2^24;
 * 0 from y = 126 on. */
__device__ inline float logistic_product(float x, float y) {
    return x * approximate_reciprocal(1.0f + exp2_fast(y));
}

/* 1 / sqrt(x) within a unit in the last place; 0 of infinity, infinity of 0. */
__device__ inline float inverse_root(float x) {
#if defined(__CUDACC__)
    float y;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    const float y = 1.0f / sqrtf(x);
#endif
    const float error = fmaf(-(x * y), y, 1.0f);
    return error == error ? fmaf(error * 0.5f, y, y) : y;
}

/* e^x within a unit in the last place for |x| <= 87; less is as -87, more as 87. As gb_exp_in_range, with
 * products and sums rounded once. */
__device__ inline float quick_exp(float x) {
    const float round_to_int = 0x1.8p+23f;
    x = x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x;
    const float shifted = fmaf(x, 0x1.715476p+0f, round_to_int), n = shifted - round_to_int;
    const float r = fmaf(n, 0x1.bd0106p-13f, fmaf(n, -0x1.63p-1f, x));
    float p = fmaf(0x1.6a2444p-10f, r, 0x1.1239d6p-7f);
    p = fmaf(p, r, 0x1.5558f2p-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    const float y = fmaf(r * r, p, r) + 1.0f;
    return gb_float_from_bits(gb_bits_from_float(y) + (gb_bits_from_float(shifted) << 23));
}

/* x / (1 + e^-x) within a unit in the last place, for finite x: for who needs less error than
 * logistic_product has. */
__device__ inline float quick_silu(float x) {
    const float divisor = 1.0f + quick_exp(-x), inverse = approximate_reciprocal(divisor);
    const float quotient = x * inverse;
    return fmaf(fmaf(-divisor, quotient, x), inverse, quotient);
}

} // namespace gb_cuda

#endif
