/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows out of the ordinary: infinities, NaN, both zeros, ties, no candidate, a candidate without noise.
 */
#include "sampler/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const gb_row_settings greedy = {.temperature = 0.0f, .top_p = 1.0f};
static const gb_row_settings sampled = {.temperature = 0.8f, .top_k = 3, .top_p = 0.9f, .seed = 7};

/* The token of a row of 5 logits, the same by both ways. */
static int32_t sample_5(const float *logits, const gb_row_settings *settings) {
    row_buffers row = allocate_row(5);
    memcpy(row.logits, logits, 5 * sizeof *logits);
    const int32_t chain = run_chain(&row, 5, settings);
    assert_int_equal(gb_sample_row(row.logits, 5, settings, row.scratch), chain);
    free_row(&row);
    return chain;
}

#define sample(settings, ...) sample_5((const float[5]){__VA_ARGS__}, settings)

static void test_nan_fails(void **state) {
    (void)state;
    assert_int_equal(sample(&greedy, 1, 2, NAN, 4, 5), GB_TOKEN_NAN);
    assert_int_equal(sample(&sampled, 1, 2, NAN, 4, 5), GB_TOKEN_NAN);
    assert_int_equal(sample(&sampled, NAN, NAN, NAN, NAN, NAN), GB_TOKEN_NAN);
    assert_int_equal(sample(&sampled, 1, -NAN, 3, INFINITY, 5), GB_TOKEN_NAN);
    assert_int_equal(sample(&sampled, -INFINITY, -INFINITY, NAN, -INFINITY, -INFINITY), GB_TOKEN_NAN);
}

static void test_no_candidate_fails(void **state) {
    (void)state;
    const float none[5] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    assert_int_equal(sample_5(none, &greedy), GB_TOKEN_NO_CANDIDATE);
    assert_int_equal(sample_5(none, &sampled), GB_TOKEN_NO_CANDIDATE);
}

static void test_nan_in_every_place(void **state) {
    (void)state;
    enum { COUNT = 1031 };
    row_buffers row = allocate_row(COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        row.logits[i] = NAN;
        assert_int_equal(gb_argmax(row.logits, NULL, COUNT), GB_TOKEN_NAN);
        assert_int_equal(gb_sample_row(row.logits, COUNT, &sampled, row.scratch), GB_TOKEN_NAN);
        row.logits[i] = 0.0f;
    }
    free_row(&row);
}

static void test_greedy_takes_lowest_index(void **state) {
    (void)state;
    assert_int_equal(sample(&greedy, 1, 5, 5, 4, 5), 1);
    assert_int_equal(sample(&greedy, -0.0f, 0.0f, -1, -0.0f, 0.0f), 0);
    assert_int_equal(sample(&greedy, -INFINITY, 1, INFINITY, 4, INFINITY), 2);
    assert_int_equal(sample(&greedy, -INFINITY, -INFINITY, -3e38f, -INFINITY, -INFINITY), 2);
    enum { COUNT = 2001 };
    row_buffers row = allocate_row(COUNT);
    for (uint32_t i = COUNT; i-- > 0;) {
        row.logits[i] = 1.0f;
        assert_int_equal(gb_argmax(row.logits, NULL, COUNT), i);
        assert_int_equal(gb_sample_row(row.logits, COUNT, &greedy, row.scratch), i);
    }
    free_row(&row);
}

static void test_infinite_logits_are_the_candidates(void **state) {
    (void)state;
    bool seen[5] = {false};
    gb_row_settings settings = {.temperature = 1.0f, .top_k = 1, .top_p = 0.1f};
    for (settings.seed = 0; settings.seed < 200; settings.seed++)
        seen[sample(&settings, 3e38f, INFINITY, -INFINITY, INFINITY, 1)] = true;
    assert_memory_equal(seen, ((bool[]){false, true, false, true, false}), sizeof seen);
}

static void test_lone_candidate(void **state) {
    (void)state;
    gb_row_settings settings = {.temperature = 1e4f, .top_k = 2, .top_p = 1e-9f};
    for (settings.seed = 0; settings.seed < 100; settings.seed++)
        assert_int_equal(sample(&settings, -INFINITY, -INFINITY, -INFINITY, -1e30f, -INFINITY), 3);
}

/* Under these seeds the word of this index is 0, so its noise is -inf. It wins where it is the only
 * candidate, and the lowest index where all scores are -inf; otherwise it loses. */
static void test_candidate_without_noise(void **state) {
    (void)state;
    enum { COUNT = 2001 };
    const struct {
        uint64_t seed;
        uint32_t index;
    } cases[] = {{285797, 1434}, {1920328, 664}};
    row_buffers row = allocate_row(COUNT);
    for (size_t n = 0; n < 2; n++) {
        const gb_row_settings settings = {.temperature = 1.0f, .top_p = 0.9f, .seed = cases[n].seed};
        gb_random_bits(settings.seed, COUNT, row.bits);
        assert_int_equal(row.bits[cases[n].index], 0);
        for (uint32_t i = 0; i < COUNT; i++)
            row.logits[i] = -INFINITY;
        row.logits[cases[n].index] = 5.0f;
        assert_int_equal(gb_sample_row(row.logits, COUNT, &settings, row.scratch), cases[n].index);
        assert_int_equal(run_chain(&row, COUNT, &settings), cases[n].index);
        row.logits[9] = 4.9f;
        assert_int_equal(gb_sample_row(row.logits, COUNT, &settings, row.scratch), 9);
        assert_int_equal(run_chain(&row, COUNT, &settings), 9);
    }
    free_row(&row);
}

/* x / T overflows: such logits are still candidates, and equal, so that the lowest index wins. */
static void test_overflow(void **state) {
    (void)state;
    gb_row_settings settings = {.temperature = 1e-4f, .top_p = 0.5f};
    for (settings.seed = 0; settings.seed < 100; settings.seed++) {
        assert_int_equal(sample(&settings, 3, 1e38f, 2e38f, -1e38f, 0), 1);
        assert_int_equal(sample(&settings, -INFINITY, -INFINITY, -2e38f, -INFINITY, -1e38f), 2);
    }
}

static void test_argmax_of_kept(void **state) {
    (void)state;
    const float x[4] = {-INFINITY, NAN, -INFINITY, -INFINITY};
    assert_int_equal(gb_argmax(x, (bool[]){false, false, true, true}, 4), 2);
    assert_int_equal(gb_argmax(x, (bool[]){true, true, true, true}, 4), GB_TOKEN_NAN);
    assert_int_equal(gb_argmax(x, (bool[]){false, false, false, false}, 4), GB_TOKEN_NO_CANDIDATE);
}

static void test_zeros_are_equal(void **state) {
    (void)state;
    float scaled[4];
    gb_apply_temperature((const float[4]){-0.0f, 0.0f, INFINITY, -INFINITY}, 4, 2.0f, scaled);
    assert_true(gb_float_bits(scaled[0]) == 0 && gb_float_bits(scaled[1]) == 0);
    assert_true(scaled[2] == 0.0f && scaled[3] == -INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan_fails),
        cmocka_unit_test(test_no_candidate_fails),
        cmocka_unit_test(test_nan_in_every_place),
        cmocka_unit_test(test_greedy_takes_lowest_index),
        cmocka_unit_test(test_infinite_logits_are_the_candidates),
        cmocka_unit_test(test_lone_candidate),
        cmocka_unit_test(test_candidate_without_noise),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_argmax_of_kept),
        cmocka_unit_test(test_zeros_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
