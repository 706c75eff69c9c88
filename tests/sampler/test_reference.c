/* SPDX-License-Identifier: Apache-2.0
 *
 * Every combination of settings on random rows against a plain reference in double precision, which sorts.
 * Where two values lie closer than float32's rounding can tell apart, either choice is right and the draw is
 * left out; few are. Repetition penalty and min-p are transformers' RepetitionPenaltyLogitsProcessor and
 * MinPLogitsWarper (of which min_tokens_to_keep is 1), presence and frequency penalty OpenAI's.
 */
#include "backends/sampler/rule.h"
#include "sampler/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3000, TOKENS = 60, BIASES = 5 };

/* Settings that may be on or off. */
enum {
    WITH_BIAS = 1,
    WITH_REPETITION = 2,
    WITH_OCCURRENCE = 4,
    WITH_TOP_K = 8,
    WITH_TOP_P = 16,
    WITH_MIN_P = 32,
    WITH_TEMPERATURE = 64,
    COMBINATIONS = 128
};

typedef struct draw_case {
    uint32_t count;
    gb_row_settings settings;
    int32_t history[TOKENS];
    uint32_t generated_from;
    int32_t bias_ids[BIASES];
    float bias_values[BIASES];
    gb_token_count counts[TOKENS];
    gb_bias_list bias;
    gb_penalties penalties;
} draw_case;

static void fill_case(int combination, uint64_t *random, uint32_t count, draw_case *c) {
    *c = (draw_case){.count = count, .generated_from = random_below(random, TOKENS)};
    c->settings = (gb_row_settings){
        .temperature = combination & WITH_TEMPERATURE ? 0.3f + 1.5f * random_unit(random) : 0.0f,
        .top_k = combination & WITH_TOP_K ? 1 + (int32_t)random_below(random, 80) : 0,
        .top_p = combination & WITH_TOP_P ? 0.05f + 0.94f * random_unit(random) : 1.0f,
        .min_p = combination & WITH_MIN_P ? 0.3f * random_unit(random) : 0.0f,
        .seed = next_random(random)};
    for (int i = 0; i < TOKENS; i++)
        c->history[i] = (int32_t)random_below(random, i % 2 ? count : 9);
    for (int i = 0; i < BIASES; i++) {
        c->bias_ids[i] = (int32_t)random_below(random, count);
        c->bias_values[i] = i == 0 ? -INFINITY : 8.0f * random_unit(random) - 4.0f;
    }
    uint8_t table[1024];
    assert_true(gb_count_scratch_bytes(TOKENS) <= sizeof table);
    gb_count_tokens(c->history, TOKENS, c->generated_from, c->counts, TOKENS, table);
    const bool repetition = combination & WITH_REPETITION, occurrence = combination & WITH_OCCURRENCE;
    c->bias = (gb_bias_list){c->bias_ids, c->bias_values, combination & WITH_BIAS ? BIASES : 0};
    c->penalties = (gb_penalties){.counts = c->counts,
                                  .limit = TOKENS,
                                  .repetition = repetition ? 0.6f + random_unit(random) : 1.0f,
                                  .frequency = occurrence ? random_unit(random) - 0.3f : 0.0f,
                                  .presence = occurrence ? 2.0f * random_unit(random) - 0.5f : 0.0f,
                                  .prompt = GB_PROMPT_REPEATS};
}

/* ---- The reference ------------------------------------------------------------------------------------- */

typedef struct candidate {
    double s;
    uint32_t index;
    bool kept;
} candidate;

static int compare_candidates(const void *a, const void *b) {
    const double left = ((const candidate *)a)->s, right = ((const candidate *)b)->s;
    return (left < right) - (left > right);
}

static void adjust_in_double(const draw_case *c, double *x) {
    for (uint32_t i = 0; i < c->bias.limit; i++)
        x[c->bias_ids[i]] += (double)c->bias_values[i];
    for (uint32_t token = 0; token < c->count; token++) {
        int seen = 0, generated = 0;
        for (uint32_t i = 0; i < TOKENS; i++) {
            seen += c->history[i] == (int32_t)token;
            generated += c->history[i] == (int32_t)token && i >= c->generated_from;
        }
        if (seen)
            x[token] = x[token] < 0 ? x[token] * (double)c->penalties.repetition
                                    : x[token] / (double)c->penalties.repetition;
        if (generated)
            x[token] -= (double)c->penalties.frequency * generated + (double)c->penalties.presence;
    }
}

static bool is_close(double a, double b) {
    return fabs(a - b) < 1e-5 * (1 + fabs(a) + fabs(b));
}

/* Marks those that the masks keep, of sorted candidates. False where it is too close to tell. */
static bool keep_in_double(const draw_case *c, candidate *sorted, uint32_t count) {
    const uint32_t k = c->settings.top_k > 0 ? (uint32_t)c->settings.top_k : count;
    if (k < count && is_close(sorted[k - 1].s, sorted[k].s))
        return false;
    const uint32_t of_top_k = k < count ? k : count;
    double total = 0, above = 0;
    for (uint32_t i = 0; i < of_top_k; i++)
        total += exp(sorted[i].s - sorted[0].s);
    for (uint32_t i = 0; i < of_top_k; i++) {
        const double mass = exp(sorted[i].s - sorted[0].s), top_p = (double)c->settings.top_p;
        if (top_p < 1 && fabs(above - top_p * total) < 1e-5 * total)
            return false;
        if (c->settings.min_p > 0 && fabs(mass - (double)c->settings.min_p) < 1e-5)
            return false;
        sorted[i].kept = (top_p == 1 || above <= top_p * total) && mass >= (double)c->settings.min_p;
        above += mass;
    }
    return true;
}

/* The token, or -1 where it is too close to tell. */
static int32_t draw_in_double(const draw_case *c, const float *logits, double *x, candidate *sorted) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->count; i++)
        x[i] = (double)logits[i];
    adjust_in_double(c, x);
    const double temperature = c->settings.temperature == 0 ? 1 : (double)c->settings.temperature;
    for (uint32_t i = 0; i < c->count; i++)
        if (x[i] > -INFINITY)
            sorted[count++] = (candidate){x[i] / temperature, i, false};
    qsort(sorted, count, sizeof *sorted, compare_candidates);
    if (c->settings.temperature == 0)
        return count > 1 && is_close(sorted[0].s, sorted[1].s) ? -1 : (int32_t)sorted[0].index;
    if (!keep_in_double(c, sorted, count))
        return -1;
    double best = -INFINITY, second = -INFINITY;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t word = gb_word_at(c->settings.seed, c->count, sorted[i].index);
        const double score = sorted[i].s + (double)gb_gumbel(word);
        if (!sorted[i].kept || score <= second)
            continue;
        second = score > best ? best : score;
        chosen = score > best ? sorted[i].index : chosen;
        best = score > best ? score : best;
    }
    return is_close(best, second) ? -1 : (int32_t)chosen;
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static void test_every_combination(void **state) {
    (void)state;
    enum { ROUNDS = 24, KINDS = 4 };
    static const row_kind kinds[KINDS] = {ROW_NORMAL, ROW_PEAKED, ROW_MASKED, ROW_SUBSTANTIAL_TAIL};
    uint64_t random = 31;
    uint32_t compared = 0;
    float *logits = calloc(MOST, sizeof *logits);
    double *x = calloc(MOST, sizeof *x);
    candidate *sorted = calloc(MOST, sizeof *sorted);
    void *scratch = aligned_alloc(64, 64 * 1024);
    assert_true(gb_sample_adjusted_scratch_bytes(MOST, BIASES, TOKENS) <= 64 * 1024);
    for (int combination = 0; combination < COMBINATIONS; combination++) {
        for (int round = 0; round < ROUNDS; round++) {
            const uint32_t count = 40 + random_below(&random, MOST - 40);
            draw_case c;
            fill_row(kinds[round % KINDS], &random, count, logits);
            fill_case(combination, &random, count, &c);
            const int32_t expected = draw_in_double(&c, logits, x, sorted);
            const int32_t token = gb_sample_adjusted_row(
                logits, count, &(gb_adjustments){c.bias, c.penalties, NULL}, &c.settings, scratch);
            if (expected >= 0 && token != expected)
                fail_msg("combination %d, round %d: token %d, expected %d", combination, round, token,
                         expected);
            compared += expected >= 0;
        }
    }
    assert_true(compared > COMBINATIONS * ROUNDS * 95 / 100);
    free(scratch);
    free(sorted);
    free(x);
    free(logits);
}

static void check_log_probabilities(uint64_t *random, row_kind kind, uint32_t count, float *logits) {
    fill_row(kind, random, count, logits);
    double largest = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = fmax(largest, (double)logits[i]);
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - largest);
    float normalizer[2];
    gb_log_normalizer(logits, count, normalizer);
    for (int n = 0; n < 50; n++) {
        const uint32_t id = random_below(random, count);
        const double expected = (double)logits[id] - largest - log(sum);
        const float found = gb_log_probability(logits, count, normalizer, (int32_t)id);
        if (!(expected == (double)found || fabs((double)found - expected) < 1e-5))
            fail_msg("kind %d, %u logits: %.9g, expected %.9g", (int)kind, count, (double)found, expected);
    }
}

static void test_log_probabilities(void **state) {
    (void)state;
    static const row_kind kinds[] = {ROW_NORMAL, ROW_FLAT,   ROW_PEAKED, ROW_TIES,
                                     ROW_EQUAL,  ROW_MASKED, ROW_LONE,   ROW_SUBSTANTIAL_TAIL};
    uint64_t random = 32;
    float *logits = calloc(262144, sizeof *logits);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (uint32_t count = 1; count < 3000; count = 2 * count + 1)
            check_log_probabilities(&random, kinds[kind], count, logits);
        check_log_probabilities(&random, kinds[kind], 262144, logits);
    }
    free(logits);
}

/* Infinite logits share the probability; an id outside of the row has none. */
static void test_odd_log_probabilities(void **state) {
    (void)state;
    static const float logits[] = {INFINITY, 3, INFINITY, -INFINITY};
    float normalizer[2];
    gb_log_normalizer(logits, 4, normalizer);
    assert_true(fabs((double)gb_log_probability(logits, 4, normalizer, 0) + log(2)) < 1e-6);
    assert_true(gb_log_probability(logits, 4, normalizer, 1) == -INFINITY);
    assert_true(gb_log_probability(logits, 4, normalizer, 3) == -INFINITY);
    assert_true(gb_log_probability(logits, 4, normalizer, 4) == -INFINITY);
    assert_true(gb_log_probability(logits, 4, normalizer, -1) == -INFINITY);
}

static void test_top_ids(void **state) {
    (void)state;
    uint64_t random = 33;
    float *logits = calloc(MOST, sizeof *logits);
    for (int n = 0; n < 400; n++) {
        const uint32_t count = 1 + random_below(&random, n % 2 ? 30 : MOST);
        const uint32_t limit = 1 + random_below(&random, count < 20 ? count : 20);
        int32_t ids[20];
        fill_row(n % 3 ? ROW_NORMAL : ROW_TIES, &random, count, logits);
        gb_top_ids(logits, count, limit, ids);
        for (uint32_t rank = 0; rank < limit; rank++) {
            uint32_t before = 0; /* those that must stand before: larger, or equal with a lower id */
            for (uint32_t i = 0; i < count; i++)
                before += logits[i] > logits[ids[rank]] ||
                          (logits[i] == logits[ids[rank]] && (int32_t)i < ids[rank]);
            assert_int_equal(before, rank);
        }
    }
    free(logits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination),
        cmocka_unit_test(test_log_probabilities),
        cmocka_unit_test(test_odd_log_probabilities),
        cmocka_unit_test(test_top_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
