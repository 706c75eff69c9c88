/* SPDX-License-Identifier: Apache-2.0
 *
 * Half-quadratic quantization (Badri and Shaji, 2023). Sought is the zero point z that minimizes the sum of
 * |w - s (q - z)|^p with p < 1, which forgives outliers. By half-quadratic splitting an auxiliary error e
 * takes the large residuals (a generalized soft threshold), and z is the mean of what then fits:
 *
 *     q = round(w / s + z)    e = shrink(w / s - (q - z))    z = mean of q - (w / s - e)
 *
 * Everything is measured in steps of the scale, so that the threshold means the same for every group.
 */
#include "export/quantize/quantizer.h"

#include "tensor/convert.h"

#include <math.h>

enum { ITERATIONS = 20 };

static const float FIRST_BETA = 10.0f, KAPPA = 1.01f; /* the authors' */

/* x^(p - 1) with p = 0.7 for x > 0, within 4 %: the exponent and mantissa of a float are nearly its
 * logarithm. It only steers the search. */
static float power(float x) {
    float bits = (float)(int32_t)gb_bits_from_float(x); /* signed: vectors have no other conversions */
    return gb_float_from_bits((uint32_t)(int32_t)(1.3f * 1064866805.0f - 0.3f * bits));
}

/* The threshold of Chartrand, "Shrinkage mappings and their induced penalty functions", 2014. */
static float shrink(float x, float inverse_beta) {
    float size = fabsf(x) + 1e-8f, left = size - inverse_beta * power(size);
    left = left > 0 ? left : 0;
    return copysignf(left, x);
}

/* One step from z; *error is that of z. The sums keep their order and so stand apart from the rest, which
 * compilers make vectors of. */
static float improve(const float *steps, uint32_t count, float highest, float zero, float inverse_beta,
                     float *error) {
    float squares[GB_MAX_GROUP], zeros[GB_MAX_GROUP], sum = 0, total = 0;
    for (uint32_t i = 0; i < count; i++) {
        float code = gb_round_code(steps[i] + zero, highest);
        float residual = steps[i] - (code - zero);
        squares[i] = residual * residual;
        zeros[i] = code - (steps[i] - shrink(residual, inverse_beta));
    }
    for (uint32_t i = 0; i < count; i++) {
        total += squares[i];
        sum += zeros[i];
    }
    *error = total;
    return sum / (float)count;
}

float gb_hqq_bias(const float *values, uint32_t count, uint32_t bits, float scale, float bias) {
    float steps[GB_MAX_GROUP];
    float highest = (float)((1u << bits) - 1u), inverse = 1.0f / scale;
    if (!isfinite(inverse))
        return bias;
    for (uint32_t i = 0; i < count; i++)
        steps[i] = values[i] * inverse;
    float zero = -bias * inverse, best = zero, least = INFINITY, beta = FIRST_BETA;
    for (int i = 0; i < ITERATIONS; i++) {
        float error, next = improve(steps, count, highest, zero, 1.0f / beta, &error);
        if (error >= least)
            break;
        least = error;
        best = zero;
        zero = next;
        beta *= KAPPA;
    }
    return -best * scale;
}
