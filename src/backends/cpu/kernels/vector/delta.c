/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"

/* Lanes are columns of the memory. A stripe of columns goes through all tokens while it is in the nearest
 * cache: where there are several, as a copy without gaps, since a memory's rows lie so far apart that a
 * stripe of them would not fit. One pass over the stripe does what a token still has to do, change and read,
 * and what the next one begins with, decay and recall. */

/* Groups of 16 columns whose two sums and change stay in registers. 32 columns of 128 rows leave half of a
 * nearest cache of 32 KB to the tokens. */
#if GB_VECTOR_LANES >= 8
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

/* Some columns of the memory, over the tokens. */
typedef struct stripe {
    float *memory; /* of the first column */
    size_t stride, column;
    gb_lanes recalled[GROUPS]; /* by the token's key, from the memory that has decayed for it */
} stripe;

GB_INLINE void begin_stripe(const gb_delta *d, stripe *s, bool corrects, int groups, size_t count) {
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++)
        s->recalled[g] = gb_zero_lanes();
    for (size_t i = 0; i < d->key_size; i++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            float *at = s->memory + i * s->stride + (size_t)g * GB_LANES;
            gb_lanes kept = gb_multiply_by(load_columns(at, count), d->decay[0]);
            store_columns(at, kept, count);
            if (corrects)
                s->recalled[g] = gb_add_scaled(s->recalled[g], d->key[i], kept);
        }
}

/* Changes the memory by a token and reads it, and unless the token is the last one goes on to the next. */
GB_INLINE void pass_token(const gb_delta *d, stripe *s, bool corrects, int groups, size_t count, size_t token,
                          bool is_last) {
    const float *key = d->key + token * d->key_stride, *query = d->query + token * d->key_stride;
    const float *next_key = key + d->key_stride;
    const float beta = d->beta[token * d->gate_stride];
    const float decay = is_last ? 1.0f : d->decay[(token + 1) * d->gate_stride];
    gb_lanes change[GROUPS], y[GROUPS], recalled[GROUPS];
    const size_t row = token * d->value_stride + s->column;
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
        const float *value = d->value + row + (size_t)g * GB_LANES;
        change[g] = change_of(load_columns(value, count), s->recalled[g], beta);
        y[g] = recalled[g] = gb_zero_lanes();
    }
    for (size_t i = 0; i < d->key_size; i++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            float *at = s->memory + i * s->stride + (size_t)g * GB_LANES;
            gb_lanes kept = gb_add_scaled(load_columns(at, count), key[i], change[g]);
            y[g] = gb_add_scaled(y[g], query[i], kept);
            if (!is_last) {
                kept = gb_multiply_by(kept, decay);
                if (corrects)
                    recalled[g] = gb_add_scaled(recalled[g], next_key[i], kept);
            }
            store_columns(at, kept, count);
        }
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
        store_columns(d->y + row + (size_t)g * GB_LANES, y[g], count);
        s->recalled[g] = recalled[g];
    }
}

GB_INLINE void all_tokens(const gb_delta *d, bool corrects, int groups, size_t column, size_t count,
                          float *copy) {
    const bool is_copied = d->is_discarded || (d->tokens > 1 && d->key_size <= GB_DELTA_COPIED);
    const size_t width = count == GB_LANES ? (size_t)groups * GB_LANES : count;
    float *memory = d->memory + column;
    stripe s = {.memory = is_copied ? copy : memory,
                .stride = is_copied ? (size_t)groups * GB_LANES : d->value_size,
                .column = column};
    for (size_t i = 0; is_copied && i < d->key_size; i++)
        memcpy(copy + i * s.stride, memory + i * d->value_size, width * sizeof *copy);
    begin_stripe(d, &s, corrects, groups, count);
    for (size_t token = 0; token + 1 < d->tokens; token++)
        pass_token(d, &s, corrects, groups, count, token, false);
    pass_token(d, &s, corrects, groups, count, d->tokens - 1, true);
    for (size_t i = 0; is_copied && !d->is_discarded && i < d->key_size; i++)
        memcpy(memory + i * d->value_size, copy + i * s.stride, width * sizeof *copy);
}

GB_INLINE void all_stripes(const gb_delta *d, bool corrects, size_t first, size_t end, float *copy) {
    for (; end - first >= GROUPS * GB_LANES; first += GROUPS * GB_LANES)
        all_tokens(d, corrects, GROUPS, first, GB_LANES, copy);
    for (; end - first >= GB_LANES; first += GB_LANES)
        all_tokens(d, corrects, 1, first, GB_LANES, copy);
    if (first < end)
        all_tokens(d, corrects, 1, first, end - first, copy);
}

void GB_FOR_ISA(gb_delta)(const gb_delta *d, size_t first, size_t end, void *scratch) {
    _Static_assert(GB_DELTA_DISCARDED * GROUPS * GB_LANES * sizeof(float) <= GB_DELTA_SCRATCH,
                   "the scratch holds a stripe");
    if (d->is_corrected)
        all_stripes(d, true, first, end, scratch);
    else
        all_stripes(d, false, first, end, scratch);
}
