/* SPDX-License-Identifier: Apache-2.0
 *
 * The sets that top-k and top-p keep, against a plain reference that sorts.
 */
#include "sampler/rows.h"

#include "backends/sampler/rule.h"
#include "backends/sampler/select.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int compare_descending(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return (left < right) - (left > right);
}

/* The candidates' values in descending order. */
static uint32_t sort_kept(const float *x, const bool *keep, uint32_t count, float *sorted) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (keep[i])
            sorted[kept++] = x[i];
    }
    qsort(sorted, kept, sizeof *sorted, compare_descending);
    return kept;
}

static void reference_top_k(const float *x, const bool *keep, uint32_t count, int32_t top_k, float *sorted,
                            bool *kept) {
    const uint32_t candidates = sort_kept(x, keep, count, sorted);
    const bool all = top_k <= 0 || (uint32_t)top_k >= candidates;
    for (uint32_t i = 0; i < count; i++)
        kept[i] = keep[i] && (all || x[i] >= sorted[top_k - 1]);
}

/* e^distance in units of 2^-40. */
static uint64_t plain_mass(float s, float max) {
    return s == max ? UINT64_C(1) << 40 : (uint64_t)(gb_exp(s - max) * 0x1p+40f);
}

static void reference_top_p(const float *x, const bool *keep, uint32_t count, float top_p, float *sorted,
                            bool *kept) {
    const uint32_t candidates = sort_kept(x, keep, count, sorted);
    uint64_t total = 0;
    for (uint32_t i = 0; i < candidates; i++)
        total += plain_mass(sorted[i], sorted[0]);
    __extension__ typedef unsigned __int128 wide;
    const uint64_t limit = (uint64_t)((wide)total * (uint64_t)((double)top_p * 0x1p+32) >> 32);
    /* The mass above the first of equal values decides for all of them. */
    uint64_t above = 0, before = 0;
    float least = -INFINITY;
    for (uint32_t i = 0; i < candidates; i++) {
        if (i == 0 || sorted[i] < sorted[i - 1])
            above = before;
        if (above <= limit)
            least = sorted[i];
        before += plain_mass(sorted[i], sorted[0]);
    }
    for (uint32_t i = 0; i < count; i++)
        kept[i] = keep[i] && (top_p == 1.0f || x[i] >= least);
}

static void check_sets(row_kind kind, uint32_t count, uint64_t *state, row_buffers *row, bool *expected) {
    static const float masses[] = {1.0f, 0.999f, 0.95f, 0.9f, 0.5f, 0.1f, 1e-6f, 1e-12f, 0x1.fffffep-1f};
    const int32_t ranks[] = {-1, 0, 1, 2, 3, 64, (int32_t)count / 2, (int32_t)count};
    fill_row(kind, state, count, row->logits);
    gb_candidates(row->logits, count, row->candidates);
    gb_apply_temperature(row->logits, count, 0.5f + 2.0f * random_unit(state), row->scaled);
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
        gb_top_k_mask(row->scaled, row->candidates, count, ranks[k], row->of_top_k);
        reference_top_k(row->scaled, row->candidates, count, ranks[k], row->scores, expected);
        assert_memory_equal(row->of_top_k, expected, count * sizeof *expected);
        const float top_p = masses[random_below(state, sizeof masses / sizeof *masses)];
        gb_top_p_mask(row->scaled, row->of_top_k, count, top_p, row->kept);
        reference_top_p(row->scaled, row->of_top_k, count, top_p, row->scores, expected);
        assert_memory_equal(row->kept, expected, count * sizeof *expected);
        /* In place. */
        gb_top_p_mask(row->scaled, row->of_top_k, count, top_p, row->of_top_k);
        assert_memory_equal(row->of_top_k, expected, count * sizeof *expected);
    }
}

static void test_sets_equal_reference(void **state) {
    (void)state;
    enum { MOST = 3000 };
    uint64_t random = 11;
    row_buffers row = allocate_row(MOST);
    bool *expected = calloc(MOST, sizeof *expected);
    for (uint32_t n = 0; n < 1400; n++) {
        const row_kind kind = n % ROW_KIND_COUNT;
        if (kind != ROW_NAN)
            check_sets(kind, 1 + random_below(&random, n % 7 == 0 ? MOST : 60), &random, &row, expected);
    }
    free(expected);
    free_row(&row);
}

static void test_ties_are_kept(void **state) {
    (void)state;
    const float x[] = {1.0f, 3.0f, 2.0f, 2.0f, 2.0f, -0.0f, 0.0f};
    const bool keep[] = {true, true, true, true, true, true, true};
    bool kept[7];
    gb_top_k_mask(x, keep, 7, 2, kept);
    assert_memory_equal(kept, ((bool[]){false, true, true, true, true, false, false}), sizeof kept);
    gb_top_k_mask(x, keep, 7, 6, kept);
    assert_memory_equal(kept, keep, sizeof kept);
    /* e^0 : 3 e^-1 : e^-2 ... have shares 0.42, 0.46, 0.06 ...; all of the second value come in together. */
    gb_top_p_mask(x, keep, 7, 0.45f, kept);
    assert_memory_equal(kept, ((bool[]){false, true, true, true, true, false, false}), sizeof kept);
    gb_top_p_mask(x, keep, 7, 0.4f, kept);
    assert_memory_equal(kept, ((bool[]){false, true, false, false, false, false, false}), sizeof kept);
}

/* The mass in two parts is the product rounded down, and near the true exponential. */
static void test_mass(void **state) {
    (void)state;
    for (float distance = 0.0f; distance > -34.0f; distance -= 0x1.4p-10f) {
        const uint64_t mass = gb_mass(distance, 0.0f);
        assert_true(mass == plain_mass(distance, 0.0f));
        const double exact = exp((double)distance) * 0x1p+40;
        assert_true(fabs((double)mass - exact) <= 1.0 + exact * 0x1p-22);
    }
    assert_true(gb_mass(INFINITY, INFINITY) == UINT64_C(1) << 40);
    assert_true(gb_mass(-INFINITY, -INFINITY) == UINT64_C(1) << 40);
    assert_true(gb_mass(1.0f, INFINITY) == 0 && gb_mass(-INFINITY, 1.0f) == 0 && gb_mass(NAN, 1.0f) == 0);
}

/* Each of many values close together is the threshold for the limits between the masses above and with it. */
static void test_every_threshold(void **state) {
    (void)state;
    enum { COUNT = 1500 };
    static const float spreads[] = {1e-6f, 1e-3f, 0.05f, 1.0f, 8.0f};
    static gb_mass_bins bins;
    float data[COUNT], sorted[COUNT];
    uint64_t random = 12;
    for (size_t n = 0; n < sizeof spreads / sizeof *spreads; n++) {
        for (int i = 0; i < COUNT; i++)
            sorted[i] = data[i] = spreads[n] * random_normal(&random);
        qsort(sorted, COUNT, sizeof *sorted, compare_descending);
        const gb_values values = {data, NULL, COUNT};
        gb_sum_masses(&values, sorted[0], &bins);
        uint64_t above = 0;
        for (int i = 0; i < COUNT; i++) {
            assert_true(gb_ranked(&values, (uint32_t)i + 1, -INFINITY, sorted[0]) == sorted[i]);
            const uint64_t mass = gb_mass(sorted[i], sorted[0]);
            if (mass > 0) {
                assert_true(gb_mass_threshold(&bins, above) == sorted[i]);
                assert_true(gb_mass_threshold(&bins, above + mass - 1) == sorted[i]);
            }
            above += mass;
        }
        assert_true(above == bins.total && above == gb_total_mass(data, COUNT, sorted[0]));
        assert_true(gb_mass_threshold(&bins, above) == -INFINITY);
    }
}

static void test_limit(void **state) {
    (void)state;
    uint64_t random = 3;
    __extension__ typedef unsigned __int128 wide;
    for (int n = 0; n < 10000; n++) {
        const uint64_t total = next_random(&random) >> (1 + random_below(&random, 24));
        const float top_p = random_unit(&random);
        const wide product = (wide)total * (uint64_t)((double)top_p * 0x1p+32);
        assert_true(gb_mass_limit(total, top_p) == (uint64_t)(product >> 32));
    }
    assert_true(gb_mass_limit(UINT64_C(1) << 63, 1.0f) == UINT64_C(1) << 63);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_equal_reference),
        cmocka_unit_test(test_ties_are_kept),
        cmocka_unit_test(test_mass),
        cmocka_unit_test(test_every_threshold),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
