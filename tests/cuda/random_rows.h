/* SPDX-License-Identifier: Apache-2.0
 *
 * Random batches of rows of logits, each row with settings of its own, and their tokens from the CPU's
 * sampler and the device's.
 */
#ifndef GUMBEL_TESTS_CUDA_RANDOM_ROWS_H
#define GUMBEL_TESTS_CUDA_RANDOM_ROWS_H

#include "base/memory.h"
#include "cuda/device_memory.h"
#include "cuda/sample_rows.h"
#include "support/random_setting.h"

#include <math.h>

enum { BIASES = 5 };

/* What a sample step finds of a row. */
typedef struct row_result {
    int32_t token;
    float logprob; /* 0 where it is not wanted */
} row_result;

/* Flat, peaked, with many ties, almost all banned, like a language model's, infinite, or with a NaN. */
static inline void fill_logits(float *x, uint32_t size, uint32_t kind, uint64_t *random) {
    const float likely = 0.3f;
    for (uint32_t i = 0; i < size; i++) {
        float r = next_float(random);
        x[i] = kind % 6 == 0 ? 3 * r : kind % 6 == 1 ? 40 * r * r * r : (float)(int)(8 * r);
        if (kind % 6 == 3)
            x[i] = next_random(random) % 50 ? -INFINITY : r;
        if (kind % 6 == 4)
            x[i] = 200 * r;
        if (kind % 6 == 5)
            x[i] = 2 * r - 15;
    }
    if (kind % 6 == 5)
        for (uint32_t i = 0; i < 40; i++)
            x[next_random(random) % size] = -likely * (float)i;
    if (kind % 31 == 5)
        x[next_random(random) % size] = INFINITY;
    if (kind % 37 == 6)
        x[next_random(random) % size] = NAN;
    if (kind % 41 == 7)
        for (uint32_t i = 0; i < size; i++)
            x[i] = -INFINITY;
}

static inline float pick(uint64_t *random, const float *values, size_t count) {
    return values[next_random(random) % count];
}

static inline void fill_settings(sample_rows *r, uint32_t b, uint64_t *random) {
    static const float temperatures[] = {0, 1, 0.8f, 0.3f, 2.5f, 1e-4f, 1e4f};
    static const float top_ps[] = {1, 0.95f, 0.5f, 0.01f, 1, 0.999f}, min_ps[] = {0, 0, 0.05f, 0.5f, 1};
    static const float repetitions[] = {1, 1, 1.3f, 0.7f}, penalties[] = {0, 0, 0.5f, -1.5f};
    static const int32_t top_ks[] = {0, 0, 1, 5, 64, 1000, 1 << 22};
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, sampler, ...)                         \
    r->name[b] = RANDOM_SETTING(dtype, neutral, next_random(random), __VA_ARGS__);
#include "program/roles.def"
    /* of these, values that are cases of their own */
    r->temperature[b] = pick(random, temperatures, 7);
    r->top_p[b] = pick(random, top_ps, 6);
    r->min_p[b] = pick(random, min_ps, 5);
    r->top_k[b] = top_ks[next_random(random) % 7];
    r->seed[b] = (uint64_t)next_random(random) << 32 | next_random(random);
    for (size_t i = (size_t)b * BIASES; i < (size_t)(b + 1) * BIASES; i++) {
        r->bias_ids[i] = next_random(random) % 4 ? (int32_t)(next_random(random) % r->size) : -1;
        r->bias_values[i] = next_random(random) % 5 ? 4 * next_float(random) : -INFINITY;
    }
    gb_token_count *counts = r->counts + (size_t)b * r->count_limit;
    uint32_t length = next_random(random) % (r->count_limit + 1), step = r->size / r->count_limit + 1;
    for (uint32_t i = 0; i < r->count_limit; i++)
        counts[i] = (gb_token_count){i < length ? (int32_t)(i * step) : -1,
                                     (int32_t)(next_random(random) % 3), (int32_t)(next_random(random) % 3)};
    r->repetition_penalty[b] = pick(random, repetitions, 4);
    r->frequency_penalty[b] = pick(random, penalties, 4);
    r->presence_penalty[b] = pick(random, penalties, 4);
    r->prompt[b] = (int32_t)(next_random(random) % 4);
    r->wanted[b] = next_random(random) % 4 == 0;
    r->masked[b] = next_random(random) % 3 == 0;
    uint32_t *mask = r->mask + b * gb_mask_words(r->size);
    const uint32_t kinds = next_random(random) % 3;
    for (size_t i = 0; i < gb_mask_words(r->size); i++)
        mask[i] = kinds == 0                ? next_random(random)
                  : next_random(random) % 7 ? 0
                                            : 1u << next_random(random) % 32;
}

/* Makes rows of which size, count and count_limit are set; false where there is no memory. */
static inline bool make_rows(sample_rows *r, uint32_t kind) {
    uint64_t random = (uint64_t)kind << 20 | r->size;
    r->bias_limit = BIASES;
    r->logits = malloc((size_t)r->count * r->size * sizeof *r->logits);
    r->bias_ids = malloc((size_t)r->count * BIASES * sizeof *r->bias_ids);
    r->bias_values = malloc((size_t)r->count * BIASES * sizeof *r->bias_values);
    r->counts = malloc((size_t)r->count * r->count_limit * sizeof *r->counts);
    r->mask = malloc(r->count * gb_mask_words(r->size) * sizeof *r->mask);
    if (!r->logits || !r->bias_ids || !r->bias_values || !r->counts || !r->mask)
        return false;
    for (uint32_t b = 0; b < r->count; b++) {
        fill_settings(r, b, &random);
        fill_logits(r->logits + (size_t)b * r->size, r->size, kind * MOST_ROWS + b, &random);
    }
    return true;
}

static inline void free_rows(sample_rows *r) {
    free(r->logits);
    free(r->bias_ids);
    free(r->bias_values);
    free(r->counts);
    free(r->mask);
}

static inline row_result sample_on_cpu(const sample_rows *r, uint32_t b, void *scratch) {
    const float *logits = r->logits + (size_t)b * r->size;
    float normalizer[2];
    row_result result = {token_on_cpu(r, b, scratch), 0};
    if (r->wanted[b]) {
        gb_log_normalizer(logits, r->size, normalizer);
        result.logprob = gb_log_probability(logits, r->size, normalizer, result.token);
    }
    return result;
}

static inline void sample_on_device(const sample_rows *r, bool has_logprobs, row_result *results,
                                    float *logits_after) {
    int32_t tokens[MOST_ROWS];
    float logprobs[MOST_ROWS] = {0};
    device_step step;
    assert_cuda(make_device_step(r, r->count, NULL, &step));
    launch_step(&step, has_logprobs);
    fetch_tensor(&step.token, tokens);
    if (has_logprobs)
        fetch_tensor(&step.logprob, logprobs);
    fetch_tensor(&step.operands[GB_SAMPLE_LOGITS], logits_after);
    for (uint32_t b = 0; b < r->count; b++)
        results[b] = (row_result){tokens[b], logprobs[b]};
    free_device_step(&step);
}

/* Fails where the device draws another token than `expected`, finds another log-probability (which it does in
 * every other batch; those of a row with a NaN mean nothing), or changes the logits. */
static inline void compare_with_device(const sample_rows *r, const row_result *expected, uint32_t kind) {
    const bool has_logprobs = kind % 2;
    row_result found[MOST_ROWS];
    float *after = malloc((size_t)r->count * r->size * sizeof(float));
    assert_true(after);
    sample_on_device(r, has_logprobs, found, after);
    assert_memory_equal(after, r->logits, (size_t)r->count * r->size * sizeof(float));
    for (uint32_t b = 0; b < r->count; b++) {
        if (found[b].token != expected[b].token)
            fail_msg("batch %u: row %u of %u, %u logits: token %d, expected %d (T %g, k %d, p %g, min-p %g)",
                     kind, b, r->count, r->size, found[b].token, expected[b].token, (double)r->temperature[b],
                     r->top_k[b], (double)r->top_p[b], (double)r->min_p[b]);
        if (has_logprobs && found[b].token >= 0 && found[b].logprob != expected[b].logprob)
            fail_msg("batch %u: row %u of %u, %u logits: log-probability %.9g, expected %.9g", kind, b,
                     r->count, r->size, (double)found[b].logprob, (double)expected[b].logprob);
    }
    free(after);
}

#endif
