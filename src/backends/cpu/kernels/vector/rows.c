/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"
#include "backends/math.h"

#include <math.h>

static float sum_of_squares(const float *x, size_t count) {
    size_t whole = count - count % GB_LANES;
    gb_lanes sums = gb_zero_lanes();
    for (size_t i = 0; i < whole; i += GB_LANES) {
        gb_lanes part = gb_load_lanes(x, GB_F32, i);
        sums = gb_add_product(sums, part, part);
    }
    if (whole < count) {
        gb_lanes part = gb_load_tail(x, GB_F32, whole, count - whole);
        sums = gb_add_product(sums, part, part);
    }
    return gb_sum_lanes(sums);
}

/* The weight's dtype decides here, outside of the loops. */
GB_INLINE void multiply_weight(const void *weight, gb_dtype dtype, float offset, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) {
        if (dtype == GB_F32)
            y[i] *= offset + ((const float *)weight)[i];
        else if (dtype == GB_BF16)
            y[i] *= offset + gb_float_from_bf16(((const uint16_t *)weight)[i]);
        else
            y[i] *= offset + gb_float_from_f16(((const uint16_t *)weight)[i]);
    }
}

/* Root mean square layer normalization (Zhang and Sennrich, 2019). */
void GB_FOR_ISA(gb_rms_norm)(const float *x, size_t count, float epsilon, float scale, const void *weight,
                             gb_dtype weight_dtype, float weight_offset, float *y) {
    float factor = scale / sqrtf(sum_of_squares(x, count) / (float)count + epsilon);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * factor;
    if (!weight)
        return;
    if (weight_dtype == GB_F32)
        multiply_weight(weight, GB_F32, weight_offset, count, y);
    else if (weight_dtype == GB_BF16)
        multiply_weight(weight, GB_BF16, weight_offset, count, y);
    else
        multiply_weight(weight, GB_F16, weight_offset, count, y);
}

void GB_FOR_ISA(gb_l2_normalize)(const float *x, size_t count, float epsilon, float scale, float *y) {
    float factor = scale / sqrtf(sum_of_squares(x, count) + epsilon);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * factor;
}

enum { ANGLES = 64 };

/* Angles in pieces, each computed once for all heads. */
void GB_FOR_ISA(gb_rotate)(const gb_rotation *r) {
    memcpy(r->y, r->x, r->heads * r->size * sizeof *r->y);
    for (size_t first = 0; first < r->frequency_count; first += ANGLES) {
        float sine[ANGLES], cosine[ANGLES];
        size_t left = r->frequency_count - first, count = left < ANGLES ? left : ANGLES;
        for (size_t i = 0; i < count; i++)
            gb_sin_cos(r->position * r->frequencies[first + i], &sine[i], &cosine[i]);
        for (size_t i = 0; i < count; i++) {
            sine[i] *= r->scale;
            cosine[i] *= r->scale;
        }
        for (size_t h = 0; h < r->heads; h++) {
            const float *a = r->x + h * r->size + first, *b = a + r->pair_offset;
            float *y = r->y + h * r->size + first, *z = y + r->pair_offset;
            for (size_t i = 0; i < count; i++)
                y[i] = a[i] * cosine[i] - b[i] * sine[i];
            for (size_t i = 0; i < count; i++)
                z[i] = b[i] * cosine[i] + a[i] * sine[i];
        }
    }
}
