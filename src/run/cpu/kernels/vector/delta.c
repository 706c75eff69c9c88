/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/vector_sources.h"
#include "run/math.h"

/* Lanes are columns of the memory. A stripe of columns goes through all tokens while it is in the cache, and
 * through each token twice: to see what the key recalls, and to change it and read it. */

/* Groups of 16 columns whose two sums and change stay in registers. */
#if GB_VECTOR_LANES == 16
enum { GROUPS = 4 };
#elif GB_VECTOR_LANES == 8
enum { GROUPS = 2 };
#else
enum { GROUPS = 1 };
#endif

/* Columns are all of a group's, or the last count < 16. */
GB_INLINE gb_lanes load_columns(const float *from, size_t count) {
    return count == GB_LANES ? gb_load_lanes(from, GB_F32, 0) : gb_load_tail(from, GB_F32, 0, count);
}

GB_INLINE void store_columns(float *to, gb_lanes lanes, size_t count) {
    if (count == GB_LANES) {
        gb_store_lanes(to, lanes);
    } else {
        float all[GB_LANES];
        gb_store_lanes(all, lanes);
        memcpy(to, all, count * sizeof *to);
    }
}

/* beta * (value - recalled) */
GB_INLINE gb_lanes change_of(gb_lanes value, gb_lanes recalled, float beta) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        value.part[p] = (value.part[p] - recalled.part[p]) * beta;
    return value;
}

GB_INLINE void one_token(const gb_delta *d, int groups, size_t column, size_t count, size_t token) {
    const float *key = d->key + token * d->key_stride, *query = d->query + token * d->key_stride;
    float decay = d->decay[token * d->gate_stride], beta = d->beta[token * d->gate_stride];
    float *memory = d->memory + column;
    gb_lanes change[GROUPS], y[GROUPS];
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++)
        change[g] = y[g] = gb_zero_lanes();
    for (size_t i = 0; i < d->key_size; i++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            gb_lanes kept = load_columns(memory + i * d->value_size + (size_t)g * GB_LANES, count);
            change[g] = gb_add_scaled(change[g], key[i], gb_multiply_by(kept, decay));
        }
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
        const float *value = d->value + token * d->value_stride + column + (size_t)g * GB_LANES;
        change[g] = change_of(load_columns(value, count), change[g], beta);
    }
    for (size_t i = 0; i < d->key_size; i++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            float *at = memory + i * d->value_size + (size_t)g * GB_LANES;
            gb_lanes kept = gb_multiply_by(load_columns(at, count), decay);
            kept = gb_add_scaled(kept, key[i], change[g]);
            store_columns(at, kept, count);
            y[g] = gb_add_scaled(y[g], query[i], kept);
        }
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++)
        store_columns(d->y + token * d->value_stride + column + (size_t)g * GB_LANES, y[g], count);
}

GB_INLINE void all_tokens(const gb_delta *d, int groups, size_t column, size_t count) {
    for (size_t token = 0; token < d->tokens; token++)
        one_token(d, groups, column, count, token);
}

void GB_FOR_ISA(gb_delta)(const gb_delta *d, size_t first, size_t end) {
    for (; end - first >= GROUPS * GB_LANES; first += GROUPS * GB_LANES)
        all_tokens(d, GROUPS, first, GB_LANES);
    for (; end - first >= GB_LANES; first += GB_LANES)
        all_tokens(d, 1, first, GB_LANES);
    if (first < end)
        all_tokens(d, 1, first, end - first);
}

/* log(1 + e^x), with the rounding of 1 + e undone. (Kahan's log1p) */
GB_INLINE float softplus(float x) {
    float magnitude = x < 0.0f ? -x : x, e = gb_exp(-magnitude), rounded = 1.0f + e;
    float quotient = gb_log(rounded) * (e / (rounded == 1.0f ? 1.0f : rounded - 1.0f));
    float log1p = rounded == 1.0f ? e : quotient;
    return (x > 0.0f ? x : 0.0f) + log1p;
}

void GB_FOR_ISA(gb_delta_decay)(const float *x, const float *a_log, const float *bias, size_t count,
                                float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = gb_exp(-(gb_exp(a_log[i]) * softplus(x[i] + bias[i])));
}
