/* SPDX-License-Identifier: Apache-2.0
 *
 * The fused sampler gives the chain's token on rows of every kind, size and setting.
 */
#include "sampler/rows.h"

#include "backends/sampler/rule.h"
#include "backends/sampler/scan.h"
#include "support/random_setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const float temperatures[] = {0.0f, 1e-4f, 0.1f, 0.8f, 1.0f, 2.0f, 100.0f, 1e4f};
static const float shares[] = {0.0f, 0.05f, 0.3f, 1.0f, 1e-12f, 1e-6f, 0x1.fffffep-1f};
static const float masses[] = {1.0f, 0.95f, 0.5f, 0.1f, 1e-9f, 0x1.fffffep-1f, 0.999f};

static gb_row_settings random_settings(uint64_t *state, uint32_t count) {
    const int32_t ranks[] = {0, -1, 1, 2, 5, 20, 64, 1000, (int32_t)count - 1, (int32_t)count, INT32_MAX};
    const bool plain = random_below(state, 4) == 0;
    gb_row_settings settings = {.seed = next_random(state)};
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, sampler, ...)                         \
    GB_OF_DRAW(kind)                                                                                         \
    (settings.name = RANDOM_SETTING(dtype, neutral, (uint32_t)next_random(state), __VA_ARGS__);)
#include "program/roles.def"
    /* of these, values that are cases of their own */
    settings.temperature = temperatures[random_below(state, sizeof temperatures / sizeof *temperatures)];
    settings.top_k = plain ? 0 : ranks[random_below(state, sizeof ranks / sizeof *ranks)];
    settings.top_p = plain ? 1.0f : masses[random_below(state, sizeof masses / sizeof *masses)];
    settings.min_p =
        random_below(state, 3) > 0 ? 0.0f : shares[random_below(state, sizeof shares / sizeof *shares)];
    return settings;
}

static void check_rows(uint64_t seed, uint32_t rows, uint32_t least, uint32_t most) {
    uint64_t state = seed;
    row_buffers row = allocate_row(most);
    for (uint32_t n = 0; n < rows; n++) {
        const uint32_t count = least + random_below(&state, most - least + 1);
        const row_kind kind = n % ROW_KIND_COUNT;
        fill_row(kind, &state, count, row.logits);
        for (int draw = 0; draw < 3; draw++) {
            const gb_row_settings settings = random_settings(&state, count);
            const int32_t chain = run_chain(&row, count, &settings);
            const int32_t fused = gb_sample_row(row.logits, count, &settings, row.scratch);
            if (chain != fused)
                print_error("kind %d count %u T %g top_k %d top_p %.9g min_p %.9g seed %llu\n", (int)kind,
                            count, (double)settings.temperature, settings.top_k, (double)settings.top_p,
                            (double)settings.min_p, (unsigned long long)settings.seed);
            assert_int_equal(fused, chain);
            assert_in_range(fused + 2, 0, count + 1);
        }
    }
    free_row(&row);
}

static void test_tiny_rows(void **state) {
    (void)state;
    check_rows(1, 8000, 1, 12);
}

static void test_small_rows(void **state) {
    (void)state;
    check_rows(2, 6000, 1, 600);
}

static void test_medium_rows(void **state) {
    (void)state;
    check_rows(3, 1400, 50, 6000);
}

static void test_large_rows(void **state) {
    (void)state;
    check_rows(4, 112, 6000, 40000);
}

static void test_vocabulary_rows(void **state) {
    (void)state;
    check_rows(5, 28, 262142, 262144);
}

enum { TOPS = 4 };

/* A few likely tokens over a bulk around -depth. */
static void fill_over_bulk(float depth, uint32_t count, uint64_t *random, float *logits) {
    for (uint32_t i = 0; i < count; i++)
        logits[i] = random_unit(random) - depth;
    for (int i = 0; i < TOPS; i++)
        logits[random_below(random, count)] = -0.4f * (float)i;
}

/* A few likely tokens among neighbours, in the same blocks, that hold some mass; hardly any elsewhere. */
static void fill_among_neighbours(uint32_t count, uint64_t *random, float *logits) {
    for (uint32_t i = 0; i < count; i++)
        logits[i] = -60.0f;
    for (int i = 0; i < TOPS; i++) {
        float *block = logits + GB_BLOCK * random_below(random, count / 2 / GB_BLOCK);
        for (uint32_t k = 1; k < GB_BLOCK; k++)
            block[k] = -16.5f;
        block[0] = -0.4f * (float)i;
    }
}

/* With top_p so close to where a likely token comes in that the little mass far below decides: where the
 * fused function has only bounds on that mass it must not take them for it. */
static void test_top_p_at_a_boundary(void **state) {
    (void)state;
    enum { COUNT = 30000 };
    uint64_t random = 6;
    row_buffers row = allocate_row(COUNT);
    for (int n = 0; n < 60; n++) {
        if (n % 2 == 0)
            fill_over_bulk(13.0f + 9.0f * random_unit(&random), COUNT, &random, row.logits);
        else
            fill_among_neighbours(COUNT, &random, row.logits);
        uint64_t mass_up_to[TOPS], total = 0;
        for (uint32_t i = 0; i < COUNT; i++)
            total += gb_mass(row.logits[i], 0.0f);
        for (int i = 0; i < TOPS; i++)
            mass_up_to[i] = gb_mass(-0.4f * (float)i, 0.0f) + (i > 0 ? mass_up_to[i - 1] : 0);
        for (int nearby = -4; nearby <= 4; nearby++) {
            const double share = (double)mass_up_to[random_below(&random, TOPS)] / (double)total;
            const float step = nearby % 2 == 0 ? 0x1p-24f : 0x1p-13f;
            const float top_p = fminf(1.0f, (float)share + (float)nearby * step);
            for (int draw = 0; draw < 5; draw++) {
                const gb_row_settings settings = {
                    .temperature = 1.0f, .top_p = top_p, .seed = next_random(&random)};
                assert_int_equal(gb_sample_row(row.logits, COUNT, &settings, row.scratch),
                                 run_chain(&row, COUNT, &settings));
            }
        }
    }
    free_row(&row);
}

/* The threshold lies in the bulk, of which a part is kept. */
static void test_top_p_within_the_bulk(void **state) {
    (void)state;
    enum { COUNT = 262144 };
    uint64_t random = 8;
    row_buffers row = allocate_row(COUNT);
    fill_over_bulk(16.7f, COUNT, &random, row.logits);
    gb_row_settings settings = {.temperature = 1.0f, .top_p = 0.995f};
    run_chain(&row, COUNT, &settings);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        kept += row.kept[i];
    assert_in_range(kept, COUNT / 10, COUNT - COUNT / 10);
    for (settings.seed = 0; settings.seed < 400; settings.seed++) {
        const int32_t token = gb_sample_row(row.logits, COUNT, &settings, row.scratch);
        assert_true(row.kept[token]);
    }
    free_row(&row);
}

/* No setting has such a min_p, but a program may. */
static void test_no_token_is_left(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    uint64_t random = 9;
    row_buffers row = allocate_row(COUNT);
    fill_over_bulk(12.0f, COUNT, &random, row.logits);
    const gb_row_settings settings = {.temperature = 1.0f, .top_p = 1.0f, .min_p = 1.3f, .seed = 1};
    assert_int_equal(run_chain(&row, COUNT, &settings), GB_TOKEN_NO_CANDIDATE);
    assert_int_equal(gb_sample_row(row.logits, COUNT, &settings, row.scratch), GB_TOKEN_NO_CANDIDATE);
    free_row(&row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny_rows),
        cmocka_unit_test(test_small_rows),
        cmocka_unit_test(test_medium_rows),
        cmocka_unit_test(test_large_rows),
        cmocka_unit_test(test_vocabulary_rows),
        cmocka_unit_test(test_top_p_at_a_boundary),
        cmocka_unit_test(test_top_p_within_the_bulk),
        cmocka_unit_test(test_no_token_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
