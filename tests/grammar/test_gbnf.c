/* SPDX-License-Identifier: Apache-2.0
 *
 * GBNF: what grammars match, and errors with line and column.
 */
#include "grammar/gbnf/gbnf.h"
#include "matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *rules, const char *text) {
    gb_expressions *expressions = gb_expressions_create();
    gb_expression root;
    gumbel_error error;
    assert_ok(gb_read_gbnf(expressions, rules, strlen(rules), NULL, &root, &error), &error);
    gb_grammar *grammar = compile_and_free(expressions, root);
    bool matched = accepts_bytes(grammar, text, strlen(text));
    gb_grammar_destroy(grammar);
    return matched;
}

static void test_syntax(void **state) {
    (void)state;
    static const struct {
        const char *rules, *yes[4], *no[4];
    } cases[] = {
        {"root ::= \"a\" \"b\"", {"ab"}, {"a", "b", "ba"}},
        {"root::=\"a\"|\"b\"", {"a", "b"}, {"ab"}},
        {"# first\n\nroot ::= x-1 # then\n  \n\nx-1 ::= \"#\"\n", {"#"}, {""}},
        {"root ::=\n  \"a\" |\n  \"b\"\n", {"a", "b"}, {"ab"}},
        {"root ::= (\n \"a\"\n \"b\"\n | \"c\" )+\r\n", {"ab", "cab"}, {"", "a"}},
        {"root ::= \"ab\"* [cd]? . \"x\"{2}", {"abab\nxx", "c\xC3\xA9xx"}, {"abab\nx", "cdexx"}},
        {"root ::= [a-c]{2,3} [x]{0,} [y]{ 1 , 2 }", {"aby", "abcxxyy"}, {"ay", "abcdy", "abyyy"}},
        {"root ::= \"a\"?{2}", {"", "a", "aa"}, {"aaa"}},
        {"root ::= [^\\n\\\"a-c]+", {"de]", "\xE4\xB8\xAD"}, {"a", "\n", "\""}},
        {"root ::= [\\x41\\u00e9\\U0001F600\\]\\\\-]+", {"A\xC3\xA9\xF0\x9F\x98\x80]\\-"}, {"B"}},
        {"root ::= \"\\\"\\\\\\n\\r\\t\\x21\\u00e9\"", {"\"\\\n\r\t!\xC3\xA9"}, {"\""}},
        {"root ::= \"\" | item root\nitem ::= \"x\"", {"", "xxx"}, {"y"}},
        {"root ::= a\na ::= \"(\" a \")\" | ", {"", "((()))"}, {"((", "())"}},
        {"root ::= a | b\na ::= \"x\" a \"y\" | \"\"\nb ::= [xz]*", {"xxyy", "xxz", ""}, {"xxyz", "y"}},
        {"root ::=", {""}, {"a"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < 4; k++) {
            if (cases[i].yes[k] && !matches(cases[i].rules, cases[i].yes[k]))
                fail_msg("%s does not match %s", cases[i].rules, cases[i].yes[k]);
            if (cases[i].no[k] && matches(cases[i].rules, cases[i].no[k]))
                fail_msg("%s matches %s", cases[i].rules, cases[i].no[k]);
        }
}

static int32_t find_token(void *user, const char *spelling, size_t length) {
    (void)user;
    return length == 7 && memcmp(spelling, "<think>", 7) == 0 ? 5 : -1;
}

static void test_tokens(void **state) {
    (void)state;
    static const char rules[] = "root ::= <think> !<[6]> <[7]>";
    const gb_gbnf_options options = {.find_token = find_token};
    gb_expressions *expressions = gb_expressions_create();
    gb_expression root;
    gumbel_error error;
    assert_ok(gb_read_gbnf(expressions, rules, sizeof rules - 1, &options, &root, &error), &error);
    gb_grammar *grammar = compile_and_free(expressions, root);
    static const gb_token_bytes tokens[9] = {{(const uint8_t *)"a", 1}};
    gb_token_trie *trie;
    gb_matcher *matcher;
    assert_ok(gb_token_trie_create(tokens, 9, &trie, &error), &error);
    assert_ok(gb_matcher_create(grammar, trie, NULL, &matcher, &error), &error);
    assert_int_equal(gb_matcher_forced(matcher, true), 5);
    assert_false(gb_matcher_accept_token(matcher, 7));
    assert_true(gb_matcher_accept_token(matcher, 5));
    assert_false(gb_matcher_accept_token(matcher, 6));
    assert_true(gb_matcher_accept_token(matcher, 0));
    assert_true(gb_matcher_accept_token(matcher, 7));
    assert_true(gb_matcher_may_end(matcher));
    gb_matcher_destroy(matcher);
    gb_token_trie_destroy(trie);
    gb_grammar_destroy(grammar);
}

static void test_other_root(void **state) {
    (void)state;
    static const char rules[] = "a ::= b\nb ::= \"x\"";
    const gb_gbnf_options options = {.root = "b"}, none = {.root = "c"};
    gb_expressions *expressions = gb_expressions_create();
    gb_expression root;
    gumbel_error error;
    assert_ok(gb_read_gbnf(expressions, rules, sizeof rules - 1, &options, &root, &error), &error);
    assert_int_equal(root, gb_express_rule(expressions, "b"));
    gb_expressions_destroy(expressions);
    expressions = gb_expressions_create();
    assert_fails(gb_read_gbnf(expressions, rules, sizeof rules - 1, &none, &root, &error),
                 GUMBEL_ERROR_FORMAT, &error, "line 2, column 10: no rule is named c");
    gb_expressions_destroy(expressions);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *rules, *message;
    } cases[] = {
        {"x ::= \"a\"", "line 1, column 10: no rule is named root"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: this rule is defined twice"},
        {"root ::= \"a\"\n   | b", "line 2, column 4: a rule was expected"},
        {"root ::= \"\xC3\xA9\" b", "line 1, column 14: this rule is not defined"},
        {"root = \"a\"", "line 1, column 1: a rule was expected"},
        {"root ::= \"a\n\"", "line 1, column 10: this \" has no end on its line"},
        {"root ::= [a", "line 1, column 10: this [ has no ]"},
        {"root ::= [z-a]", "line 1, column 11: a range that ends before it begins"},
        {"root ::= (\"a\"\n", "line 1, column 10: this ( has no )"},
        {"root ::= \"a\")", "line 1, column 13: this ) has no ("},
        {"root ::= *", "line 1, column 10: there is nothing to repeat"},
        {"root ::= \"a\" = b", "line 1, column 14: a literal, class, rule or group was expected"},
        {"root ::= \"a\"{2", "line 1, column 13: a repeat in braces is {m}, {m,} or {m,n}"},
        {"root ::= \"a\"{,}", "line 1, column 13: a repeat in braces"},
        {"root ::= \"a\"{3,2}", "line 1, column 13: a repeat from more to less"},
        {"root ::= \"\\q\"", "line 1, column 11: this escape is not known"},
        {"root ::= \"\\u12\"", "line 1, column 11: this escape needs 4 hexadecimal digits"},
        {"root ::= \"\\uD800\"", "line 1, column 11: U+D800 is no character"},
        {"root ::= <think>", "line 1, column 10: the vocabulary has no token <think>"},
        {"root ::= !x", "line 1, column 10: a token is <[id]> or <spelling>"},
        {"root ::= <[99999999999]>", "the vocabulary has no token <[99999999999]>"},
        {"root ::= \xFF", "it is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_expressions *expressions = gb_expressions_create();
        gb_expression root;
        gumbel_error error;
        gumbel_status status =
            gb_read_gbnf(expressions, cases[i].rules, strlen(cases[i].rules), NULL, &root, &error);
        assert_true(status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_UNSUPPORTED);
        assert_fails(status, status, &error, cases[i].message);
        gb_expressions_destroy(expressions);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_syntax), cmocka_unit_test(test_tokens),
                                       cmocka_unit_test(test_other_root), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
