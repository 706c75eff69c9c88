/* SPDX-License-Identifier: Apache-2.0
 *
 * Where all texts of plain characters are allowed: after a text that was taken, of patterns.
 */
#include "grammar/compile/grammar.h"
#include "grammar/match/plain_states.h"
#include "grammar/regex/regex.h"
#include "matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static gb_grammar *grammar_of(const char *pattern) {
    gb_regex regex = {0};
    gumbel_error error;
    gb_expressions *all = gb_expressions_create();
    assert_ok(gb_read_regex(all, pattern, strlen(pattern), NULL, &regex, &error), &error);
    return compile_and_free(all, regex.expression);
}

static bool allows_after(const char *pattern, const char *text) {
    gb_grammar *grammar = grammar_of(pattern);
    gb_configurations configurations;
    gb_plain_states states = {0};
    assert_true(gb_configurations_begin(&configurations, &grammar->automaton, 1000, 1000000));
    uint32_t at = gb_start_configuration(&configurations);
    for (size_t i = 0; text[i]; i++)
        at = gb_byte_step(&configurations, at, (uint8_t)text[i]);
    assert_int_not_equal(at, GB_DEAD);
    const bool allows = gb_allows_plain_texts(&states, &configurations, at);
    assert_int_equal(gb_allows_plain_texts(&states, &configurations, at), allows);
    gb_plain_states_free(&states);
    gb_configurations_free(&configurations);
    gb_grammar_destroy(grammar);
    return allows;
}

static void test_allowed(void **state) {
    (void)state;
    assert_true(allows_after("\"[^\"]*\"", "\""));
    assert_true(allows_after("\"[^\"]*\"", "\"a"));
    assert_true(allows_after("\"(ab|cd|[^\"]*)\"", "\""));
    assert_true(allows_after("\"([^\"a]|a([^\"b]|b))*", "\""));
    assert_true(allows_after("([^\"][^\"])*", "a"));
    assert_true(allows_after("(a+|[ -~]*[^\\n]*)x?", ""));
}

/* Of the last ones some text of a few characters is not allowed, or no long one is. */
static void test_not_allowed(void **state) {
    (void)state;
    assert_false(allows_after("\"[^\"]*\"", ""));
    assert_false(allows_after("\"[^\"]*\"", "\"\xC3"));
    assert_false(allows_after("[a-z]*", ""));
    assert_false(allows_after("[^\"]{0,40}", ""));
    assert_false(allows_after("[^\"]{0,4000}", ""));
    assert_false(allows_after("[^\"\\u{10FFFF}]*", ""));
    assert_false(allows_after("[^\"\\u00e9]*", ""));
    assert_false(allows_after("([^\"a]|a[^\"b])*", ""));
    assert_false(allows_after("([^\"a]|ab?[^\"b]|abb[^\"b])*", ""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_not_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
