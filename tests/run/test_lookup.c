/* SPDX-License-Identifier: Apache-2.0
 *
 * What a drafter finds and weighs: matches against a search without an index, chances of acceptance, the
 * costs of steps, and how many rows pay.
 */
#include "base/memory.h"
#include "run/draft/acceptance.h"
#include "run/draft/lookup.h"
#include "run/draft/step_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 3000, MOST = 8 };

static uint32_t chance_state;

/* Below limit. */
static uint32_t chance(uint32_t limit) {
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * limit) >> 32);
}

/* ---- Lookups ------------------------------------------------------------------------------------------- */

/* The longest match, at most the longest that counts, and the latest of those. */
static uint32_t search(const int32_t *tokens, uint32_t count, uint32_t *found) {
    uint32_t best = 0;
    for (uint32_t end = 1; end + 1 < count; end++) {
        uint32_t length = 0;
        while (length <= end && length < GB_LOOKUP_LONGEST &&
               tokens[end - length] == tokens[count - 1 - length])
            length++;
        if (length >= 2 && length >= best) {
            best = length;
            *found = end;
        }
    }
    return best;
}

/* Few tokens with repeated parts, where chains are short enough to be followed to their end. */
static void matches_are_the_longest(void **state) {
    (void)state;
    static int32_t tokens[TOKENS];
    gb_lookup lookup = {0};
    uint32_t found_any = 0;
    for (uint32_t n = 0; n < TOKENS; n++) {
        const bool repeats = n > 100 && n % 97 < 50;
        tokens[n] = repeats ? tokens[n - 83] : (int32_t)chance(40);
        gb_lookup_add(&lookup, &tokens[n], 1);
        int32_t following[MOST];
        uint32_t end = 0;
        const uint32_t length = gb_lookup_find(&lookup, following, MOST);
        assert_int_equal(length, search(tokens, n + 1, &end));
        found_any += length > 0;
        for (uint32_t i = 0; i < MOST && length > 0; i++)
            assert_int_equal(following[i], end + 1 + i <= n ? tokens[end + 1 + i] : following[end + i - n]);
    }
    assert_true(found_any > TOKENS / 3);
    gb_lookup_free(&lookup);
}

static void what_repeats_goes_on(void **state) {
    (void)state;
    const int32_t tokens[] = {9, 4, 5, 6, 4, 5, 6}, expected[MOST] = {4, 5, 6, 4, 5, 6, 4, 5};
    int32_t following[MOST];
    gb_lookup lookup = {0};
    assert_int_equal(gb_lookup_find(&lookup, following, MOST), 0);
    gb_lookup_add(&lookup, tokens, 4);
    assert_int_equal(gb_lookup_find(&lookup, following, MOST), 0);
    gb_lookup_add(&lookup, tokens + 4, 3);
    assert_int_equal(gb_lookup_find(&lookup, following, MOST), 3);
    assert_memory_equal(following, expected, sizeof expected);
    gb_lookup_free(&lookup);
}

static bool refuse(void *user, size_t bytes) {
    int *left = user;
    return (*left)-- > 0 || bytes == 0;
}

/* Whichever allocation fails, it finds nothing from there on. */
static void without_memory_it_finds_nothing(void **state) {
    (void)state;
    int32_t following[MOST];
    for (int allowed = 0; allowed < 6; allowed++) {
        gb_lookup lookup = {0};
        int left = allowed;
        gb_set_allocation_hook(refuse, &left);
        for (int32_t n = 0; n < TOKENS; n++)
            gb_lookup_add(&lookup, &(int32_t){n % 3}, 1);
        gb_set_allocation_hook(NULL, NULL);
        assert_int_equal(gb_lookup_find(&lookup, following, MOST), 0);
        gb_lookup_free(&lookup);
    }
}

/* ---- Chances ------------------------------------------------------------------------------------------- */

static void chances_follow_what_was_seen(void **state) {
    (void)state;
    gb_acceptance acceptance = {0};
    float before = 0;
    for (uint32_t matching = 0; matching < 40; matching++) {
        const float usual = gb_acceptance_chance(&acceptance, matching);
        assert_true(usual > 0 && usual < 1 && usual >= before);
        before = usual;
    }
    const float usual = gb_acceptance_chance(&acceptance, 2);
    for (int i = 0; i < 50; i++)
        gb_acceptance_note(&acceptance, 2, false);
    assert_true(gb_acceptance_chance(&acceptance, 2) < 0.02f);
    assert_true(gb_acceptance_chance(&acceptance, 3) > 0.4f);
    for (int i = 0; i < 5000; i++)
        gb_acceptance_fade(&acceptance);
    assert_true(fabsf(gb_acceptance_chance(&acceptance, 2) - usual) < 0.01f);
    for (int i = 0; i < 400; i++)
        gb_acceptance_note(&acceptance, 2, i % 4 > 0);
    assert_true(fabsf(gb_acceptance_chance(&acceptance, 2) - 0.75f) < 0.01f);
}

/* ---- Costs --------------------------------------------------------------------------------------------- */

static void costs_are_those_measured(void **state) {
    (void)state;
    gb_step_times times = {0};
    assert_true(gb_step_times_of(&times, 8) > gb_step_times_of(&times, 1));
    gb_step_times_note(&times, 1, 4e-3);
    gb_step_times_note(&times, 5, 12e-3);
    assert_true(fabs(gb_step_times_of(&times, 1) - 4e-3) < 1e-9);
    assert_true(fabs(gb_step_times_of(&times, 3) - 8e-3) < 1e-9);
    assert_true(gb_step_times_of(&times, 9) > 12e-3);
    for (int i = 0; i < 100; i++)
        gb_step_times_note(&times, 1, 5e-3);
    assert_true(fabs(gb_step_times_of(&times, 1) - 5e-3) < 1e-5);
    gb_step_times_note(&times, 1, 5); /* one that the machine held up */
    assert_true(gb_step_times_of(&times, 1) < 6e-3);
    for (int i = 0; i < 2000; i++)
        gb_step_times_note(&times, 1, 5e-3);
    assert_true(gb_step_times_of(&times, 5) < 9e-3); /* the 12 ms are too long ago */
}

/* A step that has captured a graph says nothing of those that find it, and longer drafts are tried again. */
static void steps_that_prepare_are_not_noted(void **state) {
    (void)state;
    gb_step_times times = {0};
    gb_step_times_note(&times, 4, 7e-3);
    const double expected = gb_step_times_of(&times, 8);
    times.has_prepared = true;
    gb_step_times_note(&times, 8, 13e-3);
    assert_true(fabs(gb_step_times_of(&times, 8) - expected) < 1e-9);
    gb_step_times_begin(&times);
    gb_step_times_note(&times, 8, 8e-3);
    assert_true(fabs(gb_step_times_of(&times, 8) - 8e-3) < 1e-9);
    times.has_prepared = true;
    for (int i = 0; i < 4; i++)
        gb_step_times_note(&times, 8, 13e-3);
    assert_true(fabs(gb_step_times_of(&times, 8) - 8e-3) < 1e-9);
    gb_step_times_note(&times, 8, 13e-3); /* so it is with all of them */
    assert_true(gb_step_times_of(&times, 8) > 9e-3);
}

/* More rows than were measured add what the last ones added, at most what is usual; less than nothing they do
 * not. */
static void longer_steps_are_tried(void **state) {
    (void)state;
    gb_step_times flat = {0}, steep = {0}, odd = {0}, one = {0};
    gb_step_times_note(&one, 5, 7.0e-3);
    gb_step_times_note(&flat, 4, 6.8e-3);
    gb_step_times_note(&flat, 5, 7.0e-3);
    assert_true(fabs(gb_step_times_of(&flat, 8) - 7.6e-3) < 1e-9);
    gb_step_times_note(&steep, 4, 4.0e-3);
    gb_step_times_note(&steep, 5, 7.0e-3);
    assert_true(fabs(gb_step_times_of(&steep, 8) - gb_step_times_of(&one, 8)) < 1e-9);
    gb_step_times_note(&odd, 4, 7.1e-3);
    gb_step_times_note(&odd, 5, 7.0e-3);
    assert_true(fabs(gb_step_times_of(&odd, 8) - 7.0e-3) < 1e-9);
    gb_step_times_note(&one, 1, 6.9e-3); /* which takes another path */
    assert_true(fabs(gb_step_times_of(&steep, 8) - gb_step_times_of(&one, 8)) < 1e-9);
}

/* Where all steps had drafts nothing says that one row takes as long. */
static void fewer_rows_are_cheaper(void **state) {
    (void)state;
    gb_step_times times = {0};
    gb_step_times_note(&times, 4, 4e-3);
    assert_true(gb_step_times_of(&times, 2) < 3.9e-3);
    assert_true(gb_step_times_of(&times, 1) < gb_step_times_of(&times, 2));
    assert_true(gb_step_times_of(&times, 1) > 2e-3);
}

/* The first step of a size may have to make what the others find. */
static void a_first_step_may_surprise(void **state) {
    (void)state;
    gb_step_times times = {0};
    gb_step_times_note(&times, 1, 50e-3);
    for (int i = 0; i < 30; i++)
        gb_step_times_note(&times, 1, 1e-3);
    assert_true(gb_step_times_of(&times, 1) < 2e-3);
    gb_step_times_note(&times, 4, 50e-3);
    assert_true(gb_step_times_of(&times, 4) < 6e-3);
    for (int i = 0; i < 4; i++)
        gb_step_times_note(&times, 4, 1.2e-3);
    assert_true(gb_step_times_of(&times, 4) < 2e-3);
}

static void rows_are_many_where_they_pay(void **state) {
    (void)state;
    static const float sure[MOST] = {0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.45f, 0.4f, 0.35f}, never[MOST] = {0.01f};
    gb_step_times cheap = {0}, dear = {0};
    for (uint32_t rows = 1; rows <= 16; rows++) {
        gb_step_times_note(&cheap, rows, 1 + 0.02 * rows);
        gb_step_times_note(&dear, rows, rows);
    }
    assert_int_equal(gb_count_paying_rows(&cheap, 1, sure, MOST), MOST);
    assert_int_equal(gb_count_paying_rows(&cheap, 8, sure, MOST), MOST);
    assert_int_equal(gb_count_paying_rows(&cheap, 1, never, 1), 0);
    assert_int_equal(gb_count_paying_rows(&dear, 1, sure, MOST), 0);
    assert_int_equal(gb_count_paying_rows(&cheap, 1, sure, 0), 0);
}

/* Steps of up to four rows cost the same: a fifth is not worth its cost. */
static void rows_stop_where_a_step_gets_longer(void **state) {
    (void)state;
    static const float sure[MOST] = {0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.4f, 0.3f, 0.2f};
    gb_step_times times = {0};
    for (uint32_t rows = 1; rows <= 9; rows++)
        gb_step_times_note(&times, rows, rows <= 4 ? 1 : 2);
    assert_int_equal(gb_count_paying_rows(&times, 1, sure, MOST), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_the_longest),
        cmocka_unit_test(what_repeats_goes_on),
        cmocka_unit_test(without_memory_it_finds_nothing),
        cmocka_unit_test(chances_follow_what_was_seen),
        cmocka_unit_test(longer_steps_are_tried),
        cmocka_unit_test(steps_that_prepare_are_not_noted),
        cmocka_unit_test(fewer_rows_are_cheaper),
        cmocka_unit_test(costs_are_those_measured),
        cmocka_unit_test(rows_are_many_where_they_pay),
        cmocka_unit_test(a_first_step_may_surprise),
        cmocka_unit_test(rows_stop_where_a_step_gets_longer),
    };
    return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}
