/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases, penalties and masks: together they give the token of the nodes, and the row comes back as it was;
 * the counts that penalties use.
 */
#include "sampler/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 700, BIASES = 12, HISTORY = 90, WORDS = (COUNT + 31) / 32 };

typedef struct adjustments {
    int32_t ids[BIASES];
    float values[BIASES];
    gb_token_count counts[HISTORY];
    uint32_t mask[WORDS];
    gb_adjustments of_row;
} adjustments;

static float random_bias(uint64_t *random) {
    return random_below(random, 4) == 0 ? -INFINITY : 6.0f * random_unit(random) - 3.0f;
}

static void fill_history(uint64_t *random, uint32_t vocabulary, int32_t *history) {
    for (int i = 0; i < HISTORY; i++)
        history[i] = (int32_t)random_below(random, vocabulary);
}

/* Words with no bit, with all, with some, or with one. */
static void fill_mask(uint64_t *random, uint32_t *mask) {
    const uint32_t kinds = 1 + random_below(random, 4);
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint32_t some = random_below(random, UINT32_MAX);
        const uint32_t words[] = {0, UINT32_MAX, some, 1u << some % 32};
        mask[i] = words[random_below(random, kinds)];
    }
}

/* Some ids twice and some outside of the row, lists of every length. */
static void fill_adjustments(uint64_t *random, uint32_t count, adjustments *a) {
    for (int i = 0; i < BIASES; i++) {
        a->ids[i] = (int32_t)random_below(random, i % 3 == 0 ? count + 2 : 8);
        a->values[i] = random_bias(random);
    }
    if (random_below(random, 2) == 0)
        a->ids[random_below(random, BIASES)] = -1;
    int32_t history[HISTORY];
    uint8_t table[2048];
    assert_true(gb_count_scratch_bytes(HISTORY) <= sizeof table);
    fill_history(random, random_below(random, 2) ? count + 1 : 20, history);
    const uint32_t length = random_below(random, HISTORY + 1);
    gb_count_tokens(history, length, random_below(random, length + 1), a->counts, HISTORY, table);
    a->of_row.bias = (gb_bias_list){a->ids, a->values, random_below(random, BIASES + 1)};
    a->of_row.penalties =
        (gb_penalties){.counts = a->counts,
                       .limit = HISTORY,
                       .repetition = random_below(random, 2) ? 1.0f : 0.5f + random_unit(random),
                       .frequency = (float)random_below(random, 3) - 1.0f,
                       .presence = 2.0f * random_unit(random) - 1.0f,
                       .prompt = (int32_t)random_below(random, 4)};
    fill_mask(random, a->mask);
    a->of_row.mask = random_below(random, 2) ? a->mask : NULL;
}

static void test_in_place_and_node_by_node(void **state) {
    (void)state;
    uint64_t random = 21;
    row_buffers row = allocate_row(COUNT);
    float before[COUNT], biased[COUNT];
    void *scratch = aligned_alloc(64, 64 * 256);
    assert_true(gb_sample_adjusted_scratch_bytes(COUNT, BIASES, HISTORY) <= 64 * 256);
    for (uint32_t n = 0; n < 6000; n++) {
        const uint32_t count = 1 + random_below(&random, COUNT);
        adjustments a;
        fill_row(n % ROW_KIND_COUNT, &random, count, before);
        fill_adjustments(&random, count, &a);
        gb_row_settings settings = {.temperature = n % 4 == 0 ? 0.0f : 1.3f,
                                    .top_k = n % 3 == 0 ? 5 : 0,
                                    .top_p = n % 5 == 0 ? 0.8f : 1.0f,
                                    .min_p = n % 7 == 0 ? 0.1f : 0.0f,
                                    .seed = next_random(&random)};
        gb_apply_bias(before, count, &a.of_row.bias, biased);
        gb_penalize(biased, count, &a.of_row.penalties, row.logits);
        if (a.of_row.mask) {
            memcpy(biased, row.logits, count * sizeof *biased);
            gb_apply_mask(biased, count, a.of_row.mask, row.logits);
        }
        const int32_t chain = run_chain(&row, count, &settings);
        memcpy(biased, before, count * sizeof *before);
        assert_int_equal(gb_sample_adjusted_row(biased, count, &a.of_row, &settings, scratch), chain);
        assert_memory_equal(biased, before, count * sizeof *before);
    }
    free(scratch);
    free_row(&row);
}

/* Against counting by looking through everything. */
static void test_counts(void **state) {
    (void)state;
    uint64_t random = 22;
    for (int n = 0; n < 300; n++) {
        int32_t history[HISTORY];
        gb_token_count list[HISTORY];
        uint8_t table[2048];
        const uint32_t vocabulary = n % 2 ? 7 : 1 << 30, length = random_below(&random, HISTORY + 1);
        const uint32_t from = random_below(&random, length + 2);
        fill_history(&random, vocabulary, history);
        memset(table, 0xa5, sizeof table);
        gb_count_tokens(history, length, from, list, HISTORY, table);
        uint32_t entries = 0, total = 0;
        for (; entries < HISTORY && list[entries].id >= 0; entries++) {
            int32_t prompt = 0, generated = 0;
            for (uint32_t i = 0; i < length; i++) {
                prompt += history[i] == list[entries].id && i < from;
                generated += history[i] == list[entries].id && i >= from;
            }
            assert_int_equal(list[entries].prompt, prompt);
            assert_int_equal(list[entries].generated, generated);
            total += (uint32_t)(prompt + generated);
            for (uint32_t other = 0; other < entries; other++)
                assert_int_not_equal(list[other].id, list[entries].id);
        }
        assert_int_equal(total, length);
    }
}

/* Token 1 occurs in the prompt only, 2 in both, 3 was generated twice. */
static void test_penalties_by_hand(void **state) {
    (void)state;
    static const gb_token_count counts[] = {{1, 2, 0}, {2, 1, 1}, {3, 0, 2}, {-1, 0, 0}, {0, 9, 9}};
    static const float logits[] = {1, 4, -4, 0.5f, -INFINITY};
    static const struct {
        int32_t prompt;
        float expected[5];
    } cases[] = {
        {0, {1, 4, -8 - 0.25f - 1, 0.25f - 0.5f - 1, -INFINITY}},
        {1, {1, 2, -8 - 0.25f - 1, 0.25f - 0.5f - 1, -INFINITY}},
        {2, {1, 4 - 0.5f - 1, -8 - 0.5f - 1, 0.25f - 0.5f - 1, -INFINITY}},
        {3, {1, 2 - 0.5f - 1, -8 - 0.5f - 1, 0.25f - 0.5f - 1, -INFINITY}},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        gb_penalties penalties = {counts, 5, 2.0f, 0.25f, 1.0f, cases[n].prompt};
        float y[5];
        gb_penalize(logits, 5, &penalties, y);
        assert_memory_equal(y, cases[n].expected, sizeof y);
    }
}

/* Entries add up in their order, -inf bans a token for good, an id of -1 ends the list. */
static void test_biases_by_hand(void **state) {
    (void)state;
    static const int32_t ids[] = {2, 2, 0, 0, 7, -1, 1};
    static const float values[] = {1.5f, 0.25f, -INFINITY, 100, 5, 9, 9};
    static const float logits[] = {INFINITY, 1, 2}, expected[] = {-INFINITY, 1, 3.75f};
    float y[3];
    gb_apply_bias(logits, 3, &(gb_bias_list){ids, values, 7}, y);
    assert_memory_equal(y, expected, sizeof y);
}

/* A bit of 0 bans, a NaN stays, bits behind the row mean nothing. */
static void test_mask_by_hand(void **state) {
    (void)state;
    enum { MOST = 70 };
    float logits[MOST], y[MOST];
    for (uint32_t count = 1; count <= MOST; count++) {
        const uint32_t mask[3] = {0x80000005, 0, count % 2 ? 0x20 : 0xffffffff};
        for (uint32_t i = 0; i < count; i++)
            logits[i] = i % 5 == 4 ? NAN : (float)i - 20;
        y[count - 1] = 99;
        gb_apply_mask(logits, count, mask, y);
        for (uint32_t i = 0; i < count; i++) {
            const bool is_allowed = mask[i / 32] >> i % 32 & 1;
            if (logits[i] != logits[i])
                assert_true(y[i] != y[i]);
            else
                assert_true(y[i] == (is_allowed ? logits[i] : -INFINITY));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place_and_node_by_node),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_penalties_by_hand),
        cmocka_unit_test(test_biases_by_hand),
        cmocka_unit_test(test_mask_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
