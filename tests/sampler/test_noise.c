/* SPDX-License-Identifier: Apache-2.0
 *
 * Random bits against MLX, and the noise of every 32-bit word.
 */
#include "sampler/rows.h"

#include "backends/sampler/rule.h"

#include "data/sampler/mlx_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void test_words_equal_mlx(void **state) {
    (void)state;
    row_buffers row = allocate_row(262144);
    for (size_t n = 0; n < COUNT_OF(mlx_words); n++) {
        const uint32_t count = mlx_words[n].count;
        gb_random_bits(mlx_words[n].seed, count, row.bits);
        uint64_t checksum = 0;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(row.bits[i], gb_word_at(mlx_words[n].seed, count, i));
            const uint32_t value = count % 2 == 0 ? row.bits[i] : gb_float_bits(gb_uniform(row.bits[i]));
            if (i < COUNT_OF(mlx_words[n].first))
                assert_int_equal(value, mlx_words[n].first[i]);
            checksum += value * (2 * (uint64_t)i + 1);
        }
        assert_true(checksum == mlx_words[n].checksum);
    }
    free_row(&row);
}

/* A float32 MLX program draws the same tokens. */
static void test_tokens_equal_mlx(void **state) {
    (void)state;
    row_buffers row = allocate_row(262144);
    for (uint32_t i = 0; i < 262144; i++)
        row.logits[i] = (float)((i * 2654435761u) >> 8) * 0x1p-21f - 4.0f;
    for (size_t n = 0; n < COUNT_OF(mlx_tokens); n++) {
        const gb_row_settings settings = {
            .temperature = mlx_tokens[n].temperature, .top_p = 1.0f, .seed = mlx_tokens[n].seed};
        assert_int_equal(gb_sample_row(row.logits, mlx_tokens[n].count, &settings, row.scratch),
                         mlx_tokens[n].token);
    }
    free_row(&row);
}

/* Rounding the largest words' uniforms up to 1, as bfloat16 does to a quarter of a percent of all, would make
 * their noise infinite and let them win every large row. */
static void test_uniform_stays_below_one(void **state) {
    (void)state;
    assert_true(gb_uniform(0) == 0.0f);
    assert_true(gb_uniform(1) == 0x1p-32f);
    assert_true(gb_uniform(0x80000000) == 0.5f);
    for (uint32_t bits = 0xffffffff; bits >= 0xfffff000; bits--) {
        assert_true(gb_uniform(bits) < 1.0f);
        assert_true(isfinite(gb_gumbel(bits)));
    }
    assert_true(gb_uniform(0xffffffff) == 1.0f - 0x1p-24f);
    assert_true(gb_gumbel(0) == -INFINITY);
}

static uint64_t mix(uint32_t bits) {
    uint64_t state = bits;
    return next_random(&state);
}

/* The sum over words b of (2 b + 1) mix(noise(b)) mod 2^64 is what every backend must agree on. Words that
 * round to the same float have the same noise, so runs [first, last] of them are added at once: their 2 b + 1
 * sum to (last + 1)^2 - first^2. */
static const uint64_t noise_checksum = 0x0d660213b089b00f;

enum { RUNS = 4096 };

typedef struct noise_runs {
    uint64_t checksum;
    float largest, before; /* the largest noise, and the last one */
    uint32_t words[RUNS];  /* the last word of each run not yet added */
    uint64_t ends[RUNS];   /* one past it */
    uint64_t begin;
    uint32_t count;
} noise_runs;

static void add_runs(noise_runs *runs) {
    float noise[RUNS];
    gb_gumbel_noise(runs->words, runs->count, noise);
    for (uint32_t i = 0; i < runs->count; i++) {
        const uint64_t end = runs->ends[i];
        runs->checksum += (end * end - runs->begin * runs->begin) * mix(gb_float_bits(noise[i]));
        runs->begin = end;
        runs->largest = noise[i] > runs->largest ? noise[i] : runs->largest;
        assert_true(noise[i] >= runs->before);
        runs->before = noise[i];
    }
    runs->count = 0;
}

static void test_noise_of_all_words(void **state) {
    (void)state;
    noise_runs *runs = calloc(1, sizeof *runs);
    runs->largest = runs->before = -INFINITY;
    for (uint64_t step = 1, value = 0; value <= UINT64_C(1) << 32; value += step) {
        /* value is a float; the words that round to it end before the middle to the next one, or at the
         * middle where its last bit is even. */
        step = value < UINT64_C(1) << 24 ? 1 : UINT64_C(1) << (40 - __builtin_clzll(value));
        uint64_t end = value + 1;
        if (step > 1)
            end = value + step / 2 + (value / step % 2 == 0);
        if (end > UINT64_C(1) << 32)
            end = UINT64_C(1) << 32;
        runs->words[runs->count] = (uint32_t)(end - 1);
        runs->ends[runs->count++] = end;
        if (runs->count == RUNS)
            add_runs(runs);
    }
    add_runs(runs);
    assert_true(runs->begin == UINT64_C(1) << 32);
    assert_true(runs->largest <= GB_NOISE_BOUND);
    if (runs->checksum != noise_checksum)
        print_error("checksum 0x%016llx, largest noise %a\n", (unsigned long long)runs->checksum,
                    (double)runs->largest);
    assert_true(runs->checksum == noise_checksum);
    free(runs);
}

/* The same checksum, word by word: half a minute, to check the shortcut of the test above. */
static int check_word_by_word(void) {
    static uint32_t words[RUNS];
    static float noise[RUNS];
    uint64_t checksum = 0;
    for (uint64_t begin = 0; begin < UINT64_C(1) << 32; begin += RUNS) {
        for (uint32_t i = 0; i < RUNS; i++)
            words[i] = (uint32_t)begin + i;
        gb_gumbel_noise(words, RUNS, noise);
        for (uint32_t i = 0; i < RUNS; i++)
            checksum += (2 * (begin + i) + 1) * mix(gb_float_bits(noise[i]));
    }
    printf("0x%016llx, expected 0x%016llx\n", (unsigned long long)checksum,
           (unsigned long long)noise_checksum);
    return checksum != noise_checksum;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--word-by-word") == 0)
        return check_word_by_word();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_equal_mlx),
        cmocka_unit_test(test_tokens_equal_mlx),
        cmocka_unit_test(test_uniform_stays_below_one),
        cmocka_unit_test(test_noise_of_all_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
