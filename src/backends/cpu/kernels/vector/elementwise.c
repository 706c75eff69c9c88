/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"
#include "backends/math.h"

void GB_FOR_ISA(gb_add)(const float *a, const float *b, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

void GB_FOR_ISA(gb_multiply)(const float *a, const float *b, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] * b[i];
}

void GB_FOR_ISA(gb_scale)(const float *x, float factor, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * factor;
}

/* Gaussian error linear units, the tanh form (Hendrycks and Gimpel, 2016). */
void GB_FOR_ISA(gb_gelu_tanh)(const float *x, size_t count, float *y) {
    const float sqrt_2_over_pi = 0x1.988454p-1f;
    for (size_t i = 0; i < count; i++) {
        float v = x[i];
        float inner = sqrt_2_over_pi * (v + 0.044715f * (v * v * v));
        y[i] = 0.5f * v * (1.0f + gb_tanh(inner));
    }
}

/* Sigmoid linear units (Elfwing, Uchibe and Doya, 2017). */
void GB_FOR_ISA(gb_silu)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] / (1.0f + gb_exp(-x[i]));
}

void GB_FOR_ISA(gb_clamped_swiglu)(const float *gate, const float *up, gb_swiglu_clamp clamp, size_t count,
                                   float *y) {
    for (size_t i = 0; i < count; i++) {
        const float g = gate[i] > clamp.limit ? clamp.limit : gate[i];
        const float below = up[i] > clamp.limit ? clamp.limit : up[i];
        const float u = below < -clamp.limit ? -clamp.limit : below;
        y[i] = g / (1.0f + gb_exp(-(clamp.alpha * g))) * (u + 1.0f);
    }
}

void GB_FOR_ISA(gb_sigmoid)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = 1.0f / (1.0f + gb_exp(-x[i]));
}

/* Squared rectified linear units (So et al., Primer, 2021). */
void GB_FOR_ISA(gb_relu_squared)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < 0.0f ? 0.0f : x[i] * x[i];
}

/* log(1 + e^x), with the rounding of 1 + e undone. (Kahan's log1p) */
GB_INLINE float softplus(float x) {
    float magnitude = x < 0.0f ? -x : x, e = gb_exp(-magnitude), rounded = 1.0f + e;
    float quotient = gb_log(rounded) * (e / (rounded == 1.0f ? 1.0f : rounded - 1.0f));
    float log1p = rounded == 1.0f ? e : quotient;
    return (x > 0.0f ? x : 0.0f) + log1p;
}

void GB_FOR_ISA(gb_softplus)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = softplus(x[i]);
}

void GB_FOR_ISA(gb_delta_decay)(const float *x, const float *a_log, const float *bias, size_t count,
                                float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = gb_exp(-(gb_exp(a_log[i]) * softplus(x[i] + bias[i])));
}

void GB_FOR_ISA(gb_soft_cap)(const float *x, float cap, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = cap * gb_tanh(x[i] / cap);
}

void GB_FOR_ISA(gb_add_scaled)(const float *x, float factor, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] += x[i] * factor;
}

void GB_FOR_ISA(gb_widen)(const void *from, gb_dtype dtype, size_t count, float *to) {
    size_t whole = count - count % GB_LANES;
    if (dtype == GB_F32)
        memcpy(to, from, count * sizeof *to);
    else if (dtype == GB_BF16)
        for (size_t i = 0; i < count; i++)
            to[i] = gb_float_from_bf16(((const uint16_t *)from)[i]);
    else {
        for (size_t i = 0; i < whole; i += GB_LANES)
            gb_store_lanes(to + i, gb_load_lanes(from, GB_F16, i));
        for (size_t i = whole; i < count; i++)
            to[i] = gb_float_from_f16(((const uint16_t *)from)[i]);
    }
}

void GB_FOR_ISA(gb_narrow)(const float *from, gb_dtype dtype, size_t count, void *to) {
    if (dtype == GB_F32)
        memcpy(to, from, count * sizeof *from);
    else
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = gb_bf16_from_float(from[i]);
}
