/* SPDX-License-Identifier: Apache-2.0
 *
 * Our own exponential, logarithm, tanh, sine and cosine. libm's differ between systems and versions; these
 * give the same bits everywhere: scalar or vectorized, any instruction set, any compiler that follows IEEE
 * 754, and CUDA (compiled with --fmad=false). They use addition, subtraction, multiplication and division in
 * round-to-nearest, comparisons, integer operations and conversions, and nothing else; no product is fused
 * into a sum (-ffp-contract=off). Every choice is a select, so a loop over any of them vectorizes.
 *
 * Errors are in units in the last place of the exact result's float, the largest over every float of the
 * domain; tests/sampler/test_math.c measures them on a part.
 */
#ifndef GUMBEL_BACKENDS_MATH_H
#define GUMBEL_BACKENDS_MATH_H

#include "tensor/convert.h"

#include <stdint.h>
#include <string.h>

#define GB_MATH GB_ANYWHERE

GB_MATH uint32_t gb_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* e^x for |x| <= 87, without a look at anything else: the heart of gb_exp, with the same bits. */
GB_MATH float gb_exp_in_range(float x) {
    /* e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln 2 / 2. Adding round_to_int to a small float leaves its
     * integer in the low bits. ln 2 is split so that n * ln2_high is exact. */
    const float round_to_int = 0x1.8p+23f;
    const float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f;
    const float shifted = x * 0x1.715476p+0f + round_to_int;
    const float n = shifted - round_to_int;
    const float r = (x - n * ln2_high) - n * ln2_low;

    /* (e^r - 1 - r) / r^2, minimax for the relative error of e^r */
    float p = 0x1.6a2444p-10f;
    p = p * r + 0x1.1239d6p-7f;
    p = p * r + 0x1.5558f2p-5f;
    p = p * r + 0x1.555492p-3f;
    p = p * r + 0x1.fffffcp-2f;
    const float y = (r * r * p + r) + 1.0f;
    return gb_float_from_bits(gb_float_bits(y) + (gb_float_bits(shifted) << 23));
}

/* e^x. Exact at 0 and -inf (0). Results past the largest float are +inf. Results below the smallest normal
 * float (x < -87.33654) are 0, so that no machine's treatment of subnormals matters. NaN gives NaN.
 * Error: 0.99. */
GB_MATH float gb_exp(float x) {
    const float lowest = -0x1.5d589ep+6f; /* the least x with e^x >= 2^-126 */
    const float highest = 0x1.62e42ep+6f; /* the largest x with e^x finite */
    float clamped = x < -88.0f ? -88.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;
    float result = gb_exp_in_range(clamped);
    result = x < lowest ? 0.0f : result;
    result = x > highest ? gb_float_from_bits(0x7f800000) : result;
    return x == x ? result : x;
}

/* The natural logarithm. log(1) = 0, log(+-0) = -inf, log(+inf) = +inf; NaN for negative x and NaN.
 * Subnormal x are computed as exactly as others. Error: 0.87. */
GB_MATH float gb_log(float x) {
    const float infinity = gb_float_from_bits(0x7f800000), not_a_number = gb_float_from_bits(0x7fc00000);
    const float smallest_normal = 0x1p-126f;
    const float normal = x < smallest_normal ? x * 0x1p+23f : x;
    const float bias = x < smallest_normal ? 23.0f : 0.0f;

    /* x = 2^k m with m in [2/3, 4/3); log x = k ln 2 + log(1 + f) */
    const uint32_t two_thirds = 0x3f2aaaab;
    const uint32_t offset = gb_float_bits(normal) - two_thirds;
    const float k = (float)((int32_t)offset >> 23) - bias;
    const float f = gb_float_from_bits((offset & 0x7fffff) + two_thirds) - 1.0f;

    /* (log(1 + f) - f + f^2 / 2) / f^3, minimax for the relative error of log(1 + f) */
    float p = -0x1.0e2a30p-3f;
    p = p * f + 0x1.1df374p-3f;
    p = p * f + -0x1.f03c52p-4f;
    p = p * f + 0x1.1ef192p-3f;
    p = p * f + -0x1.55b7e6p-3f;
    p = p * f + 0x1.99ce42p-3f;
    p = p * f + -0x1.fffe5ep-3f;
    p = p * f + 0x1.55550cp-2f;
    const float square = f * f;
    const float tail = square * (f * p) - 0.5f * square;

    const float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f;
    float result = (k * ln2_low + tail) + f + k * ln2_high;
    result = x < infinity ? result : infinity;
    result = x > 0.0f ? result : not_a_number;
    return x == 0.0f ? -infinity : result;
}

/* The hyperbolic tangent. Odd; exact at 0; +-1 from |x| = 9.02 on; NaN gives NaN. Error: 1.34. */
GB_MATH float gb_tanh(float x) {
    const uint32_t sign = gb_float_bits(x) & 0x80000000;
    const float a = gb_float_from_bits(gb_float_bits(x) ^ sign);

    /* |x| < 0.625: x + x^3 p(x^2); otherwise 1 - 2 / (e^2|x| + 1) */
    const float z = a * a;
    float p = -0x1.76abf6p-8f;
    p = p * z + 0x1.5256cep-6f;
    p = p * z + -0x1.b84448p-5f;
    p = p * z + 0x1.110768p-3f;
    p = p * z + -0x1.555534p-2f;
    const float small = a + a * (z * p);
    const float large = 1.0f - 2.0f / (gb_exp(a + a) + 1.0f);
    const float result = a < 0.625f ? small : large;
    return gb_float_from_bits(gb_float_bits(result) | sign);
}

/* Sine and cosine of an angle in radians, |angle| <= 2^20; garbage (but no trap) beyond. Reduced and
 * evaluated in double, so that rotary angles of long contexts keep all their bits. Error: 0.501. */
GB_MATH void gb_sin_cos(float angle, float *sine, float *cosine) {
    /* angle = n pi/2 + r, |r| <= pi/4. pi/2 is split so that n * half_pi_high is exact. */
    const double round_to_int = 0x1.8p+52;
    const double half_pi_high = 0x1.921fb544p+0, half_pi_low = 0x1.0b4611a626331p-34;
    const double x = (double)angle;
    const double shifted = x * 0x1.45f306dc9c883p-1 + round_to_int;
    const double n = shifted - round_to_int;
    const double r = (x - n * half_pi_high) - n * half_pi_low;
    const double z = r * r;

    double p = 0x1.6cd83816ba768p-19;
    p = p * z + -0x1.a00f9d1fc960cp-13;
    p = p * z + 0x1.11110895a4d47p-7;
    p = p * z + -0x1.5555554cb903cp-3;
    const double s = r + r * (z * p);

    double q = -0x1.242abd30b2382p-22;
    q = q * z + 0x1.a0111faffc066p-16;
    q = q * z + -0x1.6c16b89817cb3p-10;
    q = q * z + 0x1.5555554f4da01p-5;
    const double c = 1.0 + z * (z * q - 0.5);

    /* The quadrant is in the low bits of shifted: odd ones swap sine and cosine, the upper ones negate. */
    uint64_t quadrant;
    memcpy(&quadrant, &shifted, sizeof quadrant);
    const uint32_t turn = (uint32_t)quadrant;
    const float sine_r = (float)s, cosine_r = (float)c;
    const float sine_value = (turn & 1) ? cosine_r : sine_r;
    const float cosine_value = (turn & 1) ? sine_r : cosine_r;
    *sine = gb_float_from_bits(gb_float_bits(sine_value) ^ ((turn & 2) << 30));
    *cosine = gb_float_from_bits(gb_float_bits(cosine_value) ^ (((turn + 1) & 2) << 30));
}

#endif
