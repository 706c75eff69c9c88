/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled grammars against the definition of their expressions, over all short texts.
 */
#include "grammar/compile/short_texts.h"
#include "grammar/matcher.h"
#include "naive.h"
#include "random_expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST 6

/* All texts of a, b and c up to LONGEST bytes, depth first. */
typedef struct enumeration {
    gb_expressions *expressions;
    gb_expression root;
    gb_matcher *matcher;
    char text[LONGEST + 1];
    bool any; /* some text was accepted */
} enumeration;

/* Whether the definition accepts a text that begins with the first length bytes. */
static bool has_continuation(enumeration *all, unsigned length) {
    if (naive_accepts(all->expressions, all->root, all->text, length))
        return true;
    for (char c = 'a'; c <= 'c' && length < LONGEST; c++) {
        all->text[length] = c;
        if (has_continuation(all, length + 1))
            return true;
    }
    return false;
}

/* Whether the matcher gets from here to an end within so many bytes. Gives up when steps are used up. */
static bool reaches_end(gb_matcher *matcher, unsigned depth, unsigned *steps) {
    if (gb_matcher_may_end(matcher))
        return true;
    for (uint8_t c = 'a'; c <= 'c' && depth && *steps; c++)
        if (gb_matcher_accept_byte(matcher, c)) {
            --*steps;
            bool reaches = reaches_end(matcher, depth - 1, steps);
            assert_true(gb_matcher_rollback(matcher, 1));
            if (reaches)
                return true;
        }
    return false;
}

/* A configuration that leads nowhere has few ways to go on: all of them are looked at. */
static void assert_reaches_end(gb_matcher *matcher) {
    for (unsigned depth = 4; depth <= 64; depth *= 2) {
        unsigned steps = 100000;
        if (reaches_end(matcher, depth, &steps) || steps == 0)
            return;
    }
    fail_msg("no end is in reach");
}

/* What is seen on the expression itself, where it is. */
static bool agrees_on_expression(const enumeration *all, unsigned length, bool accepts) {
    uint64_t steps = 100000;
    const gb_text_place place =
        gb_try_short_text(all->expressions, all->root, (const uint8_t *)all->text, length, &steps);
    return place == GB_TEXT_IS_UNKNOWN || accepts == (place == GB_TEXT_IS_IN);
}

static void check_below(enumeration *all, unsigned length) {
    bool accepts = naive_accepts(all->expressions, all->root, all->text, length);
    assert_int_equal(gb_matcher_may_end(all->matcher), accepts);
    assert_true(agrees_on_expression(all, length, accepts));
    all->any |= accepts;
    for (char c = 'a'; c <= 'c' && length < LONGEST; c++) {
        all->text[length] = c;
        if (gb_matcher_accept_byte(all->matcher, (uint8_t)c)) {
            check_below(all, length + 1);
            assert_true(gb_matcher_rollback(all->matcher, 1));
        } else {
            assert_false(has_continuation(all, length + 1));
        }
        all->text[length] = c;
    }
    if (length == 2)
        assert_reaches_end(all->matcher);
}

/* How many of the grammars allow a text. */
static unsigned check_grammars(gb_expression make(gb_expressions *, random_state *), uint64_t seeds) {
    unsigned compiled = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        random_state random = {seed * 977};
        gumbel_error error;
        enumeration all = {.expressions = gb_expressions_create()};
        all.root = make(all.expressions, &random);
        gb_grammar *grammar;
        gumbel_status status = gb_grammar_compile(all.expressions, all.root, NULL, &grammar, &error);
        if (status == GUMBEL_OK) {
            assert_int_equal(gb_matcher_create(grammar, NULL, NULL, &all.matcher, NULL), GUMBEL_OK);
            check_below(&all, 0);
            compiled++;
            gb_matcher_destroy(all.matcher);
        } else if (strstr(error.message, "no text")) {
            assert_false(has_continuation(&all, 0));
        } else {
            assert_non_null(strstr(error.message, "of those in any order"));
        }
        gb_grammar_destroy(grammar);
        gb_expressions_destroy(all.expressions);
    }
    return compiled;
}

static void test_random_expressions(void **state) {
    (void)state;
    assert_true(check_grammars(random_grammar, 1600) > 1000);
}

/* Items that differ, with a text behind them that may be the separator's. */
static gb_expression make_distinct(gb_expressions *all, random_state *random) {
    const gb_expression pair[] = {random_distinct(all, random, 1 + random_below(random, 2)),
                                  random_expression(all, random, 1, true)};
    return gb_express_sequence(all, pair, 2);
}

static void test_distinct(void **state) {
    (void)state;
    assert_true(check_grammars(make_distinct, 300) > 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_expressions),
                                       cmocka_unit_test(test_distinct)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
