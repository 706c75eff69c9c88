/* SPDX-License-Identifier: Apache-2.0
 *
 * Automata as expressions: alone, in others, in intersections, and wrong ones.
 */
#include "matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static gb_expressions *expressions;

static int set_up(void **state) {
    (void)state;
    expressions = gb_expressions_create();
    return expressions ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    gb_expressions_destroy(expressions);
    return 0;
}

/* An even number of a, none included, with any b and c between them. */
static gb_expression even(void) {
    static const gb_byte_move moves[] = {
        {0, 1, 'a', 'a'}, {0, 0, 'b', 'c'}, {1, 0, 'a', 'a'}, {1, 1, 'b', 'c'}};
    static const bool accepts[] = {true, false};
    return gb_express_automaton(expressions, moves, 4, accepts, 2);
}

static bool matches(gb_expression root, const char *text) {
    gb_grammar *grammar;
    gumbel_error error;
    assert_ok(gb_grammar_compile(expressions, root, NULL, &grammar, &error), &error);
    const bool accepts = accepts_bytes(grammar, text, strlen(text));
    gb_grammar_destroy(grammar);
    return accepts;
}

static void test_alone(void **state) {
    (void)state;
    assert_true(matches(even(), ""));
    assert_true(matches(even(), "abca"));
    assert_true(matches(even(), "cb"));
    assert_false(matches(even(), "a"));
    assert_false(matches(even(), "aad"));
}

/* Where it may be empty and stands in a repeat, the empty text is left out. */
static void test_within(void **state) {
    (void)state;
    const gb_expression end = gb_express_bytes(expressions, "d", 1);
    const gb_expression item = gb_express_sequence(expressions, (gb_expression[]){even(), end}, 2);
    const gb_expression all = gb_express_repeat(expressions, item, 1, 2);
    assert_true(matches(all, "aadd"));
    assert_false(matches(all, "ad"));
    assert_false(matches(all, "ddd"));
    const gb_expression repeated = gb_express_repeat(expressions, even(), 0, GB_NO_END);
    assert_true(matches(repeated, ""));
    assert_true(matches(repeated, "aabaca"));
    assert_false(matches(repeated, "aaa"));
}

static void test_operand(void **state) {
    (void)state;
    const gb_expression a = gb_express_bytes(expressions, "a", 1);
    const gb_expression some = gb_express_repeat(expressions, a, 3, 6);
    assert_true(matches(gb_express_both(expressions, some, even()), "aaaa"));
    assert_false(matches(gb_express_both(expressions, some, even()), "aa"));
    assert_true(matches(gb_express_except(expressions, some, even()), "aaaaa"));
    assert_false(matches(gb_express_except(expressions, some, even()), "aaaa"));
}

static void check_wrong(const gb_byte_move *moves, size_t move_count, size_t state_count) {
    static const bool accepts[2] = {true, true};
    gb_expressions *own = gb_expressions_create();
    gumbel_error error;
    assert_int_equal(gb_express_automaton(own, moves, move_count, accepts, state_count), 0);
    assert_fails(gb_expressions_error(own, &error), GUMBEL_ERROR_ARGUMENT, &error, "automaton");
    gb_expressions_destroy(own);
}

static void test_wrong(void **state) {
    (void)state;
    check_wrong(NULL, 0, 0);
    check_wrong((gb_byte_move[]){{0, 2, 'a', 'a'}}, 1, 2);
    check_wrong((gb_byte_move[]){{2, 0, 'a', 'a'}}, 1, 2);
    check_wrong((gb_byte_move[]){{1, 0, 'a', 'a'}, {0, 0, 'a', 'a'}}, 2, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_alone, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_within, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_operand, set_up, tear_down),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
