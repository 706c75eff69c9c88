/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sampler's tests share: a random number generator, rows of logits of many kinds, and the chain of
 * nodes run one after the other as the graph has it.
 */
#ifndef GUMBEL_TESTS_SAMPLER_ROWS_H
#define GUMBEL_TESTS_SAMPLER_ROWS_H

#include "backends/math.h"
#include "backends/sampler/sampler.h"

#include <math.h>
#include <stdlib.h>

/* splitmix64. (Steele, Lea, Flood, 2014) */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit) {
    return (uint32_t)((next_random(state) >> 32) * limit >> 32);
}

/* In [0, 1). */
static inline float random_unit(uint64_t *state) {
    return (float)(next_random(state) >> 40) * 0x1p-24f;
}

/* About normal, standard deviation 1. */
static inline float random_normal(uint64_t *state) {
    float sum = -6.0f;
    for (int i = 0; i < 12; i++)
        sum += random_unit(state);
    return sum;
}

typedef enum row_kind {
    ROW_NORMAL,           /* standard deviation 4 */
    ROW_FLAT,             /* standard deviation 0.1 */
    ROW_PEAKED,           /* the bulk 20 under a few */
    ROW_TIES,             /* few different values, both zeros among them */
    ROW_EQUAL,            /* all the same */
    ROW_MASKED,           /* mostly -inf */
    ROW_LONE,             /* all but one -inf */
    ROW_NONE,             /* all -inf */
    ROW_INFINITE,         /* some +inf */
    ROW_NAN,              /* one NaN */
    ROW_ANY_BITS,         /* random bits: all magnitudes and signs, both infinities */
    ROW_SUBNORMAL,        /* random subnormals */
    ROW_HUGE,             /* around the largest float, so that x / T overflows */
    ROW_SUBSTANTIAL_TAIL, /* the bulk 9 to 13 under the top, with much of the mass */
    ROW_KIND_COUNT
} row_kind;

static inline float random_logit(row_kind kind, uint64_t *state) {
    static const float steps[] = {-2.0f, -0.0f, 0.0f, 1.0f, 1.5f};
    float x;
    switch (kind) {
    case ROW_FLAT:
        return 0.1f * random_normal(state);
    case ROW_PEAKED:
        return random_below(state, 3000) == 0 ? 2.0f * random_normal(state) : random_normal(state) - 20.0f;
    case ROW_TIES:
        return steps[random_below(state, 5)];
    case ROW_EQUAL:
        return 3.25f;
    case ROW_MASKED:
        return random_below(state, 8) == 0 ? random_normal(state) : -INFINITY;
    case ROW_LONE:
    case ROW_NONE:
        return -INFINITY;
    case ROW_INFINITE:
        return random_below(state, 30) == 0 ? INFINITY : random_normal(state);
    case ROW_ANY_BITS:
        do
            x = gb_float_from_bits((uint32_t)next_random(state));
        while (x != x || (isinf(x) && x > 0.0f));
        return x;
    case ROW_SUBNORMAL:
        return gb_float_from_bits((uint32_t)next_random(state) & 0x807fffff);
    case ROW_HUGE:
        return random_normal(state) * 5e37f;
    case ROW_SUBSTANTIAL_TAIL:
        return random_below(state, 1000) == 0 ? 11.0f + random_unit(state) : 2.0f * random_unit(state);
    default:
        return 4.0f * random_normal(state);
    }
}

static inline void fill_row(row_kind kind, uint64_t *state, uint32_t count, float *logits) {
    for (uint32_t i = 0; i < count; i++)
        logits[i] = random_logit(kind, state);
    const uint32_t special = random_below(state, count);
    if (kind == ROW_PEAKED)
        logits[special] = 1.0f;
    if (kind == ROW_LONE)
        logits[special] = -7.0f;
    if (kind == ROW_NAN)
        logits[special] = NAN;
    if (kind == ROW_INFINITE)
        logits[special] = INFINITY;
}

/* A row's working memory. */
typedef struct row_buffers {
    float *logits, *scaled, *noise, *scores;
    uint32_t *bits;
    bool *candidates, *of_top_k, *kept;
    void *scratch;
} row_buffers;

static inline row_buffers allocate_row(uint32_t count) {
    const size_t scratch = (gb_sample_scratch_bytes(count) + 63) / 64 * 64;
    return (row_buffers){
        .logits = calloc(count, sizeof(float)),
        .scaled = calloc(count, sizeof(float)),
        .noise = calloc(count, sizeof(float)),
        .scores = calloc(count, sizeof(float)),
        .bits = calloc(count, sizeof(uint32_t)),
        .candidates = calloc(count, sizeof(bool)),
        .of_top_k = calloc(count, sizeof(bool)),
        .kept = calloc(count, sizeof(bool)),
        .scratch = aligned_alloc(64, scratch),
    };
}

static inline void free_row(row_buffers *row) {
    free(row->logits);
    free(row->scaled);
    free(row->noise);
    free(row->scores);
    free(row->bits);
    free(row->candidates);
    free(row->of_top_k);
    free(row->kept);
    free(row->scratch);
}

/* The token that the graph's nodes give for row->logits; leaves their results in row. */
static inline int32_t run_chain(row_buffers *row, uint32_t count, const gb_row_settings *settings) {
    const bool greedy = settings->temperature == 0.0f;
    gb_candidates(row->logits, count, row->candidates);
    gb_apply_temperature(row->logits, count, greedy ? 1.0f : settings->temperature, row->scaled);
    memcpy(row->kept, row->candidates, count * sizeof *row->kept);
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)(gb_##name##_mask(row->scaled, row->kept, count, settings->name, row->kept);)
#include "program/roles.def"
    gb_random_bits(settings->seed, count, row->bits);
    gb_gumbel_noise(row->bits, count, row->noise);
    for (uint32_t i = 0; i < count; i++)
        row->scores[i] = row->scaled[i] + row->noise[i];
    const int32_t drawn = gb_argmax(row->scores, row->kept, count);
    const int32_t largest = gb_argmax(row->logits, NULL, count);
    return greedy || largest < 0 ? largest : drawn;
}

#endif
