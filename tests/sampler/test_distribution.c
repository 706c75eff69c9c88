/* SPDX-License-Identifier: Apache-2.0
 *
 * How often each token is drawn, by a chi-square test against softmax over the kept set; and that a draw
 * depends on nothing but its arguments.
 */
#include "sampler/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 100, DRAWS = 100000 };

/* Whether counts, with classes expected rarely put together, are what chance gives in all but one of 10,000
 * experiments. (Wilson and Hilferty, 1931, for the quantile) */
static bool counts_fit(const uint32_t *counts, const double *expected, uint32_t classes) {
    double chi_square = 0.0, rare = 0.0, rare_expected = 0.0;
    int freedom = 0;
    for (uint32_t i = 0; i < classes; i++) {
        if (expected[i] < 10.0) {
            rare += counts[i];
            rare_expected += expected[i];
            continue;
        }
        chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
        freedom++;
    }
    if (rare_expected >= 10.0) {
        chi_square += (rare - rare_expected) * (rare - rare_expected) / rare_expected;
        freedom++;
    }
    if (freedom < 2)
        return true;
    freedom--;
    const double spread = 2.0 / (9.0 * freedom), normal = 3.719;
    const double limit = freedom * pow(1.0 - spread + normal * sqrt(spread), 3.0);
    if (chi_square > limit)
        print_error("chi-square %g with %d degrees of freedom, limit %g\n", chi_square, freedom, limit);
    return chi_square <= limit;
}

static int compare_descending(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left < right) - (left > right);
}

/* Expected counts: softmax in double, cut by top-k and then by top-p. No two logits are equal. */
static void fill_expected(const float *logits, const gb_row_settings *settings, double *expected) {
    double sorted[COUNT], total = 0.0, kept_mass = 0.0;
    for (int i = 0; i < COUNT; i++)
        sorted[i] = exp((double)logits[i] / (double)settings->temperature);
    qsort(sorted, COUNT, sizeof *sorted, compare_descending);
    const int ranked = settings->top_k > 0 ? settings->top_k : COUNT;
    for (int i = 0; i < ranked; i++)
        total += sorted[i];
    double least = 0.0;
    for (int i = 0; i < ranked && kept_mass <= (double)settings->top_p * total; i++) {
        least = sorted[i];
        kept_mass += sorted[i];
    }
    for (int i = 0; i < COUNT; i++) {
        const double mass = exp((double)logits[i] / (double)settings->temperature);
        expected[i] = mass >= least ? mass / kept_mass * DRAWS : 0.0;
    }
}

static void check_distribution(const gb_row_settings *settings, row_kind kind, uint64_t first_seed) {
    uint64_t random = 5;
    uint32_t counts[COUNT] = {0};
    double expected[COUNT];
    row_buffers row = allocate_row(COUNT);
    fill_row(kind, &random, COUNT, row.logits);
    fill_expected(row.logits, settings, expected);
    gb_row_settings used = *settings;
    for (uint64_t n = 0; n < DRAWS; n++) {
        used.seed = first_seed + n;
        counts[gb_sample_row(row.logits, COUNT, &used, row.scratch)]++;
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(counts[i] == 0 || expected[i] > 0.0);
    assert_true(counts_fit(counts, expected, COUNT));
    free_row(&row);
}

static void test_temperature(void **state) {
    (void)state;
    check_distribution(&(gb_row_settings){.temperature = 1.0f, .top_p = 1.0f}, ROW_NORMAL, 0);
    check_distribution(&(gb_row_settings){.temperature = 3.0f, .top_p = 1.0f}, ROW_NORMAL, 1u << 31);
    check_distribution(&(gb_row_settings){.temperature = 0.7f, .top_p = 1.0f}, ROW_FLAT, UINT64_MAX - 50);
}

static void test_top_k(void **state) {
    (void)state;
    check_distribution(&(gb_row_settings){.temperature = 2.0f, .top_k = 10, .top_p = 1.0f}, ROW_NORMAL, 0);
    check_distribution(&(gb_row_settings){.temperature = 1.0f, .top_k = 99, .top_p = 1.0f}, ROW_FLAT, 1);
}

static void test_top_p(void **state) {
    (void)state;
    check_distribution(&(gb_row_settings){.temperature = 2.0f, .top_p = 0.9f}, ROW_NORMAL, 0);
    check_distribution(&(gb_row_settings){.temperature = 1.0f, .top_p = 0.5f}, ROW_FLAT, 2);
}

static void test_top_k_and_top_p(void **state) {
    (void)state;
    check_distribution(&(gb_row_settings){.temperature = 2.0f, .top_k = 20, .top_p = 0.8f}, ROW_NORMAL, 0);
    check_distribution(&(gb_row_settings){.temperature = 1.0f, .top_k = 50, .top_p = 0.7f}, ROW_FLAT, 3);
}

/* A large vocabulary of equals: each index is as likely as any other. Where the uniform can round to 1, as in
 * bfloat16, the noise of hundreds of indices is infinite and the lowest of them always wins. */
static void test_large_vocabulary(void **state) {
    (void)state;
    enum { VOCABULARY = 262144, CLASSES = 16, ROWS = 320 };
    row_buffers row = allocate_row(VOCABULARY);
    uint32_t counts[CLASSES] = {0};
    double expected[CLASSES];
    for (int i = 0; i < CLASSES; i++)
        expected[i] = (double)ROWS / CLASSES;
    gb_row_settings settings = {.temperature = 1.0f, .top_p = 1.0f};
    for (settings.seed = 0; settings.seed < ROWS; settings.seed++)
        counts[gb_sample_row(row.logits, VOCABULARY, &settings, row.scratch) / (VOCABULARY / CLASSES)]++;
    assert_true(counts_fit(counts, expected, CLASSES));
    free_row(&row);
}

/* Same arguments, same token: whatever the scratch held, wherever the row lies. */
static void test_determinism(void **state) {
    (void)state;
    enum { MOST = 5000 };
    uint64_t random = 77;
    row_buffers row = allocate_row(MOST + 16);
    for (int n = 0; n < 300; n++) {
        const uint32_t count = 1 + random_below(&random, MOST);
        fill_row(ROW_NORMAL, &random, count, row.logits);
        const gb_row_settings settings = {
            .temperature = 1.5f, .top_k = 40 * (n % 2), .top_p = 0.97f, .seed = next_random(&random)};
        memset(row.scratch, n, gb_sample_scratch_bytes(count));
        const int32_t token = gb_sample_row(row.logits, count, &settings, row.scratch);
        memset(row.scratch, 0xff, gb_sample_scratch_bytes(count));
        assert_int_equal(gb_sample_row(row.logits, count, &settings, row.scratch), token);
        memmove(row.logits + 3, row.logits, count * sizeof *row.logits);
        assert_int_equal(gb_sample_row(row.logits + 3, count, &settings, row.scratch), token);
    }
    free_row(&row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_top_k_and_top_p),
        cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_determinism),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
