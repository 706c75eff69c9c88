/* SPDX-License-Identifier: Apache-2.0
 *
 * How often two rows of logits draw the same token with the same seeds, which is how often a draft's guess is
 * accepted: what Gumbel noise in common gives, sum over i of 1 / sum over j of max(p_j / p_i, q_j / q_i)
 * (Daliri, Musco, Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024).
 */
#include "sampler/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { COUNT = 100, DRAWS = 40000 };

static void find_masses(const float *logits, float temperature, double *masses) {
    double total = 0;
    for (int i = 0; i < COUNT; i++)
        total += masses[i] = exp((double)logits[i] / (double)temperature);
    for (int i = 0; i < COUNT; i++)
        masses[i] /= total;
}

static double chance_of_same(const double *p, const double *q) {
    double chance = 0;
    for (int i = 0; i < COUNT; i++) {
        double sum = 0;
        for (int j = 0; j < COUNT; j++)
            sum += fmax(p[j] / p[i], q[j] / q[i]);
        chance += 1 / sum;
    }
    return chance;
}

static double distance_of(const double *p, const double *q) {
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += fabs(p[i] - q[i]) / 2;
    return sum;
}

/* Logits that differ by normal noise of that deviation. */
static void check_coupling(float temperature, float deviation, uint64_t random) {
    row_buffers target = allocate_row(COUNT), draft = allocate_row(COUNT);
    double p[COUNT], q[COUNT], same = 0;
    fill_row(ROW_NORMAL, &random, COUNT, target.logits);
    for (int i = 0; i < COUNT; i++)
        draft.logits[i] = target.logits[i] + deviation * random_normal(&random);
    gb_row_settings settings = {.temperature = temperature, .top_p = 1.0f};
    for (uint64_t n = 0; n < DRAWS; n++) {
        settings.seed = random + n;
        same += gb_sample_row(target.logits, COUNT, &settings, target.scratch) ==
                gb_sample_row(draft.logits, COUNT, &settings, draft.scratch);
    }
    find_masses(target.logits, temperature, p);
    find_masses(draft.logits, temperature, q);
    const double measured = same / DRAWS, expected = chance_of_same(p, q), distance = distance_of(p, q);
    if (fabs(measured - expected) >= 0.01)
        print_error("temperature %g, deviation %g: %g of the tokens are the same, expected %g\n",
                    (double)temperature, (double)deviation, measured, expected);
    assert_true(fabs(measured - expected) < 0.01);
    assert_true(expected >= (1 - distance) / (1 + distance) && expected <= 1 - distance + 1e-9);
    free_row(&target);
    free_row(&draft);
}

static void test_as_often_as_theory_says(void **unused) {
    (void)unused;
    static const float temperatures[] = {0.7f, 1.0f, 1.5f, 3.0f}, deviations[] = {0.1f, 0.5f, 2.0f, 6.0f};
    for (uint64_t t = 0; t < 4; t++)
        for (uint64_t d = 0; d < 4; d++)
            check_coupling(temperatures[t], deviations[d], t * 4 + d);
}

static void test_the_same_rows_always_agree(void **unused) {
    (void)unused;
    check_coupling(1.0f, 0.0f, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_often_as_theory_says),
        cmocka_unit_test(test_the_same_rows_always_agree),
    };
    return cmocka_run_group_tests_name("coupling", tests, NULL, NULL);
}
