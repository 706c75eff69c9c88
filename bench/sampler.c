/* SPDX-License-Identifier: Apache-2.0
 *
 * Time per token of the sampler on one row of 262,144 logits and one core, beside the plain argmax and the
 * usual way of sampling: softmax, sort, cumulative sum, search. Penalties count a history of tokens, anew for
 * each token as a step does.
 *
 *     bench_sampler [repetitions]
 */
#include "backends/sampler/sampler.h"
#include "base/clock.h"
#include "base/memory.h"
#include "random_logits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCABULARY = 262144, HISTORY = 4096, BIASES = 32 };

typedef struct bench_row {
    const char *name, *description;
    float depth; /* of the bulk under the top */
} bench_row;

typedef struct bench_case {
    const char *name;
    gb_row_settings settings;
} bench_case;

typedef struct indexed_probability {
    float probability;
    int32_t index;
} indexed_probability;

/* One way of drawing a token. */
typedef int32_t (*draw_function)(const float *logits, const gb_row_settings *settings, void *scratch);

static int32_t draw_argmax(const float *logits, const gb_row_settings *settings, void *scratch) {
    (void)settings;
    (void)scratch;
    return gb_argmax(logits, NULL, VOCABULARY);
}

static int32_t draw_fused(const float *logits, const gb_row_settings *settings, void *scratch) {
    return gb_sample_row(logits, VOCABULARY, settings, scratch);
}

/* What a row under biases and penalties needs beside its logits. */
typedef struct bench_adjustments {
    int32_t history[HISTORY], bias_ids[BIASES];
    float bias_values[BIASES];
    gb_token_count counts[HISTORY];
} bench_adjustments;

static bench_adjustments adjustments;

/* A history in which few tokens make up most of the text, as in language: the square of a uniform number. */
static void fill_adjustments(void) {
    uint64_t state = 2;
    for (int i = 0; i < HISTORY; i++) {
        const double u = (double)(next_random(&state) >> 11) * 0x1p-53;
        adjustments.history[i] = (int32_t)(u * u * VOCABULARY / 16) * 16;
    }
    for (int i = 0; i < BIASES; i++) {
        adjustments.bias_ids[i] = (int32_t)(next_random(&state) % VOCABULARY);
        adjustments.bias_values[i] = i % 2 ? -INFINITY : 1.0f;
    }
}

static int32_t draw_adjusted(const float *logits, const gb_row_settings *settings, void *scratch) {
    gb_count_tokens(adjustments.history, HISTORY, HISTORY / 2, adjustments.counts, HISTORY, scratch);
    const gb_bias_list bias = {adjustments.bias_ids, adjustments.bias_values, BIASES};
    const gb_penalties penalties = {adjustments.counts, HISTORY, 1.1f, 0.1f, 1.5f, GB_PROMPT_REPEATS};
    float *row = (float *)(uintptr_t)logits; /* changed and put back */
    return gb_sample_adjusted_row(row, VOCABULARY, &(gb_adjustments){bias, penalties, NULL}, settings,
                                  scratch);
}

static int32_t draw_logprob(const float *logits, const gb_row_settings *settings, void *scratch) {
    float normalizer[2];
    (void)scratch;
    gb_log_normalizer(logits, VOCABULARY, normalizer);
    return gb_log_probability(logits, VOCABULARY, normalizer, (int32_t)(settings->seed % VOCABULARY)) < -1.0f;
}

static int compare_probabilities(const void *a, const void *b) {
    const float left = ((const indexed_probability *)a)->probability;
    const float right = ((const indexed_probability *)b)->probability;
    return (left < right) - (left > right);
}

static int32_t draw_sorted(const float *logits, const gb_row_settings *settings, void *scratch) {
    indexed_probability *sorted = scratch;
    if (settings->temperature == 0.0f)
        return gb_argmax(logits, NULL, VOCABULARY);
    float max = logits[0];
    for (int32_t i = 1; i < VOCABULARY; i++)
        max = logits[i] > max ? logits[i] : max;
    float total = 0.0f;
    for (int32_t i = 0; i < VOCABULARY; i++) {
        sorted[i] = (indexed_probability){expf((logits[i] - max) / settings->temperature), i};
        total += sorted[i].probability;
    }
    qsort(sorted, VOCABULARY, sizeof *sorted, compare_probabilities);
    int32_t kept = settings->top_k > 0 ? settings->top_k : VOCABULARY;
    float mass = 0.0f;
    for (int32_t i = 0; i < kept; i++) {
        mass += sorted[i].probability;
        if (mass > settings->top_p * total)
            kept = i + 1;
    }
    uint64_t state = settings->seed;
    float left = (float)(next_random(&state) >> 40) * 0x1p-24f * mass;
    int32_t chosen = 0;
    while (chosen + 1 < kept && (left -= sorted[chosen].probability) > 0.0f)
        chosen++;
    return sorted[chosen].index;
}

/* Repetitions of the sorted way, which takes a thousand times as long. */
static size_t slow_share(size_t repetitions) {
    return repetitions / 20 + 1;
}

static int compare_doubles(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The median time of a draw in microseconds, each with its own seed. */
static double median_time(draw_function draw, const float *logits, const gb_row_settings *settings,
                          void *scratch, double *times, size_t repetitions) {
    gb_row_settings used = *settings;
    for (size_t i = 0; i < repetitions; i++) {
        used.seed = i;
        const double begin = 1e6 * gb_seconds();
        const volatile int32_t token = draw(logits, &used, scratch);
        (void)token;
        times[i] = 1e6 * gb_seconds() - begin;
    }
    qsort(times, repetitions, sizeof *times, compare_doubles);
    return times[repetitions / 2];
}

static const bench_row rows[] = {
    {"peaked", "40 likely tokens, the bulk 20 under the top", 20.0f},
    {"tailed", "40 likely tokens, the bulk 12 under the top", 12.0f},
    {"flat", "all around 0, standard deviation 1", 0.0f},
};

static const bench_case cases[] = {
    {"T=0", {.temperature = 0.0f, .top_p = 1.0f}},
    {"T=0.8", {.temperature = 0.8f, .top_p = 1.0f}},
    {"T=0.8 top-k 64", {.temperature = 0.8f, .top_k = 64, .top_p = 1.0f}},
    {"T=0.8 top-p 0.95", {.temperature = 0.8f, .top_p = 0.95f}},
    {"T=0.8 both", {.temperature = 0.8f, .top_k = 64, .top_p = 0.95f}},
};

/* Without a sorted way to compare with. */
static const struct {
    const char *name;
    draw_function draw;
    gb_row_settings settings;
} more_cases[] = {
    {"T=0.8 min-p 0.05", draw_fused, {.temperature = 0.8f, .top_p = 1.0f, .min_p = 0.05f}},
    {"T=0 adjusted", draw_adjusted, {.temperature = 0.0f, .top_p = 1.0f}},
    {"all settings", draw_adjusted, {.temperature = 0.8f, .top_k = 64, .top_p = 0.95f, .min_p = 0.05f}},
    {"log-probability", draw_logprob, {.temperature = 0.8f, .top_p = 1.0f}},
};

static void bench(const bench_row *row, float *logits, void *scratch, double *times, size_t repetitions) {
    fill_row(logits, VOCABULARY, row->depth, 1);
    const double argmax = median_time(draw_argmax, logits, &cases[0].settings, scratch, times, repetitions);
    printf("\n%s (%s)\n", row->name, row->description);
    printf("%-18s %10s %10s %10s\n", "", "gumbel", "/argmax", "sorted");
    printf("%-18s %10.1f %10.2f\n", "plain argmax", argmax, 1.0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const gb_row_settings *settings = &cases[c].settings;
        const double fused = median_time(draw_fused, logits, settings, scratch, times, repetitions);
        const double sorted =
            median_time(draw_sorted, logits, settings, scratch, times, slow_share(repetitions));
        printf("%-18s %10.1f %10.2f %10.1f\n", cases[c].name, fused, fused / argmax, sorted);
    }
    for (size_t c = 0; c < sizeof more_cases / sizeof *more_cases; c++) {
        const double time =
            median_time(more_cases[c].draw, logits, &more_cases[c].settings, scratch, times, repetitions);
        printf("%-18s %10.1f %10.2f\n", more_cases[c].name, time, time / argmax);
    }
}

int main(int argc, char **argv) {
    const size_t repetitions = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 201;
    float *logits = gb_allocate_aligned(VOCABULARY, sizeof *logits);
    void *scratch = gb_allocate_aligned(VOCABULARY, sizeof(indexed_probability));
    double *times = gb_allocate(repetitions + 1, sizeof *times);
    if (repetitions == 0 || logits == NULL || scratch == NULL || times == NULL)
        return 1;
    fill_adjustments();
    printf("%d logits, one core, microseconds per token: median of %zu (%zu for the sorted way)\n",
           VOCABULARY, repetitions, slow_share(repetitions));
    printf("adjusted: %d biases, penalties on a history of %d tokens\n", BIASES, HISTORY);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        bench(&rows[r], logits, scratch, times, repetitions);
    gb_free(times);
    gb_free(scratch);
    gb_free(logits);
    return 0;
}
