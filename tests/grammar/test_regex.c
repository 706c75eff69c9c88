/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions: what they match, their anchors, and what is refused with which words.
 */
#include "grammar/regex/regex.h"
#include "matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *text) {
    gb_expressions *expressions = gb_expressions_create();
    gb_regex regex;
    gumbel_error error;
    assert_ok(gb_read_regex(expressions, pattern, strlen(pattern), NULL, &regex, &error), &error);
    gb_grammar *grammar = compile_and_free(expressions, regex.expression);
    bool matched = accepts_bytes(grammar, text, strlen(text));
    gb_grammar_destroy(grammar);
    return matched;
}

typedef struct match_case {
    const char *pattern, *yes[4], *no[4];
} match_case;

static void check_matches(const match_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++) {
            if (cases[i].yes[k] && !matches(cases[i].pattern, cases[i].yes[k]))
                fail_msg("%s does not match %s", cases[i].pattern, cases[i].yes[k]);
            if (cases[i].no[k] && matches(cases[i].pattern, cases[i].no[k]))
                fail_msg("%s matches %s", cases[i].pattern, cases[i].no[k]);
        }
}

static void test_syntax(void **state) {
    (void)state;
    static const match_case cases[] = {
        {"", {""}, {"a"}},
        {"abc", {"abc"}, {"ab", "abcd", ""}},
        {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
        {"(a|b)c", {"ac", "bc"}, {"c", "abc"}},
        {"(?:a)(?<n>b)(?P<m>c)", {"abc"}, {"ab"}},
        {"a*", {"", "aaaa"}, {"b"}},
        {"a+?b??", {"a", "aab"}, {"", "b"}},
        {"a{2}", {"aa"}, {"a", "aaa"}},
        {"a{2,}b", {"aab", "aaaaab"}, {"ab", "b"}},
        {"a{1,3}", {"a", "aaa"}, {"", "aaaa"}},
        {"a{0}b", {"b"}, {"ab"}},
        {"a{,2}", {"a{,2}"}, {"a", "aa"}},
        {"a{x}{", {"a{x}{"}, {"a"}},
        {"]}", {"]}"}, {""}},
        {".", {"x", "\xC3\xA9", "\xF0\x9F\x98\x80", "\r"}, {"\n", "", "xx"}},
        {"^a$", {"a"}, {"", "^a$"}},
        {"^(a|b$|^c)$", {"a", "b", "c"}, {"ab"}},
        {"(^a)b", {"ab"}, {"a"}},
        {"\\Aa\\z|b\\Z", {"a", "b"}, {"ab"}},
    };
    check_matches(cases, sizeof cases / sizeof *cases);
}

static void test_classes(void **state) {
    (void)state;
    static const match_case cases[] = {
        {"[abc]", {"a", "c"}, {"d", "", "ab"}},
        {"[^abc]", {"d", "\n", "\xE4\xB8\xAD"}, {"a"}},
        {"[a-c-]", {"b", "-"}, {"d"}},
        {"[-a]", {"-", "a"}, {"b"}},
        {"[]a]|b", {"b"}, {"a", "]", "a]"}},
        {"[^]", {"a", "\n"}, {""}},
        {"[\\]\\\\^]", {"]", "\\", "^"}, {"a"}},
        {"[\\d\\s]", {"7", "\t", "\xC2\xA0", "\xE3\x80\x80"}, {"a", "\xD9\xA3"}},
        {"[^\\w]", {"-", "\xC3\xA9"}, {"a", "_", "5"}},
        {"\\D\\W\\S", {"a-b"}, {"1-b", "aab", "a- "}},
        {"[\\x41-C\\u0044]", {"A", "B", "C", "D"}, {"E", "x"}},
        {"\\u{1F600}|\\uD83D\\uDE01", {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x81"}, {"\xF0\x9F\x98\x82"}},
        {"\\U000000e9\\x{e9}", {"\xC3\xA9\xC3\xA9"}, {"e"}},
        {"[\\b]\\cJ", {"\b\n"}, {"b"}},
        {"\\t\\n\\r\\f\\v\\a", {"\t\n\r\f\v\a"}, {"tnrfva"}},
        {"\\.\\*\\/\\-\\ ", {".*/- "}, {"x*/- "}},
        {"[\xC3\xA4-\xC3\xBC]", {"\xC3\xA9"}, {"e", "\xC3\xBD"}},
        {"\\p{Lu}\\p{Ll}+", {"Ab", "\xC3\x89\xC3\xA9"}, {"ab", "A"}},
        {"\\pL\\PL\\p{Decimal_Number}", {"a-1", "\xE4\xB8\xAD.\xD9\xA3"}, {"aa1", "--1"}},
        {"[^\\p{L}\\p{N}]", {" ", "\xE2\x82\xAC"}, {"a", "1", "\xD7\x90"}},
        {"\\P{Any}|x", {"x"}, {"y"}},
    };
    check_matches(cases, sizeof cases / sizeof *cases);
}

static void test_anchors(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        bool start, end;
        const char *yes, *no;
    } cases[] = {
        {"b", false, false, "abc", "ac"},
        {"^b", true, false, "bc", "ab"},
        {"b$", false, true, "ab", "bc"},
        {"^b$", true, true, "b", "bb"},
        {"^a|b$", false, false, "acb", "cac"},
        {"^a|^b", true, false, "bc", "cb"},
        {"(^a|b)$", false, true, "cb", "ca"},
        {"^(a|b)$", true, true, "a", "ab"},
        {"((^a)|(b$))", false, false, "ac", "bc"},
        {"(^a)c", true, false, "acx", "bac"},
        {"a(c$)", false, true, "xac", "acx"},
        {"", false, false, "anything", NULL},
        {"(^a|b)c", false, false, "xbc", "xac"},
        {"(^|x)c", false, false, "cd", "ac"},
        {"(b|a$)", false, false, "xbx", "ax"},
        {"c(x|$)", false, false, "ac", "ca"},
        {"x*^b|a", false, false, "bx", "xb"},
        {"b$y*|a", false, false, "xb", "by"},
        {"a^b|c", false, false, "ac", "ab"},
        {"a$b|c", false, false, "ac", "ab"},
        {"^(a(x|$))*$", true, true, "axa", "aa"},
        {"^([ab]+(x|$)){3,}$", true, true, "axbxa", "axb"},
        {"^(a|$){3,}b*$", true, true, "a", "ab"},
        {"^(a|b$)?c*$", true, true, "b", "bc"},
        {"[]|b", false, false, "ab", "a"},
        {"^[^]b$", true, true, "ab", "b"},
        {"^(?!ab)[a-z]+$", true, true, "ba", "abc"},
        {"^(?=a)(?!.*b)", true, false, "ac", "acb"},
        {"a(?!b)", false, false, "abac", "ab"},
        {"^a(?=c$)", true, false, "ac", "acc"},
        {"^(?!(a|bc)$)[a-z]*$", true, true, "abc", "bc"},
        {"^((?!ab)(?!c).)*$", true, true, "ba", "bab"},
        {"^((?!ab|b$).)+$", true, true, "ba", "xb"},
        {"^(?:(?!.*bb)[a-z]*)?c$", true, true, "abac", "abbc"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_expressions *expressions = gb_expressions_create();
        static const gb_character_range letters = {'a', 'z'};
        gb_expression letter = gb_express_characters(expressions, &letters, 1);
        gb_regex_options options = {.around = gb_express_repeat(expressions, letter, 0, GB_NO_END)};
        gb_regex regex;
        gumbel_error error;
        assert_ok(
            gb_read_regex(expressions, cases[i].pattern, strlen(cases[i].pattern), &options, &regex, &error),
            &error);
        assert_int_equal(regex.anchored_at_start, cases[i].start);
        assert_int_equal(regex.anchored_at_end, cases[i].end);
        gb_grammar *grammar = compile_and_free(expressions, regex.expression);
        assert_true(accepts_bytes(grammar, cases[i].yes, strlen(cases[i].yes)));
        assert_false(cases[i].no && accepts_bytes(grammar, cases[i].no, strlen(cases[i].no)));
        gb_grammar_destroy(grammar);
    }
}

/* Behind an alternative a text is at the same place, whichever others it has: 2 to the power of 12 places
 * would be too many. */
static void test_alternatives_share_a_place(void **state) {
    (void)state;
    static const char pattern[] =
        "alpha|bravo|charlie|delta|echo|foxtrot|golf|hotel|^india|juliett$|kilo|^(lima|mike)";
    static const gb_character_range letters = {'a', 'z'};
    const gb_grammar_limits limits = {.dfa_states = 1000};
    gb_expressions *expressions = gb_expressions_create();
    const gb_expression any =
        gb_express_repeat(expressions, gb_express_characters(expressions, &letters, 1), 0, GB_NO_END);
    gb_regex regex;
    gb_grammar *grammar;
    gumbel_error error;
    assert_ok(gb_read_regex(expressions, pattern, sizeof pattern - 1, &(gb_regex_options){.around = any},
                            &regex, &error),
              &error);
    const gb_expression root = gb_express_both(expressions, any, regex.expression);
    assert_ok(gb_grammar_compile(expressions, root, &limits, &grammar, &error), &error);
    gb_expressions_destroy(expressions);
    assert_true(accepts_bytes(grammar, "xgolfx", 6) && accepts_bytes(grammar, "xjuliett", 8));
    assert_true(accepts_bytes(grammar, "mikex", 5) && accepts_bytes(grammar, "xindiakilo", 10));
    assert_false(accepts_bytes(grammar, "xindia", 6) || accepts_bytes(grammar, "juliettx", 8));
    gb_grammar_destroy(grammar);
}

/* Every character in angle brackets. */
static gb_expression bracketed(void *user, gb_expressions *expressions, const gb_character_range *ranges,
                               size_t count) {
    ++*(int *)user;
    gb_expression items[] = {gb_express_bytes(expressions, "<", 1),
                             gb_express_characters(expressions, ranges, count),
                             gb_express_bytes(expressions, ">", 1)};
    return gb_express_sequence(expressions, items, 3);
}

static void test_written_characters(void **state) {
    (void)state;
    int calls = 0;
    gb_expressions *expressions = gb_expressions_create();
    gb_regex_options options = {.characters = bracketed, .user = &calls};
    gb_regex regex;
    assert_ok(gb_read_regex(expressions, "a[b-d].", 7, &options, &regex, NULL), NULL);
    gb_grammar *grammar = compile_and_free(expressions, regex.expression);
    assert_true(accepts_bytes(grammar, "<a><c><>>", 9));
    assert_false(accepts_bytes(grammar, "acx", 3));
    assert_int_equal(calls, 3);
    gb_grammar_destroy(grammar);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        gumbel_status status;
        const char *message;
    } cases[] = {
        {"c(?:a(?=b))*", GUMBEL_ERROR_UNSUPPORTED,
         "character 2: anchors and lookahead in a group that is repeated"},
        {"(?!b)*", GUMBEL_ERROR_UNSUPPORTED, "character 1: lookahead with a quantifier"},
        {"(?=^b)", GUMBEL_ERROR_UNSUPPORTED, "character 1: an anchor ^ in lookahead"},
        {"\xC3\xA9(?<=b)", GUMBEL_ERROR_UNSUPPORTED, "character 2: lookbehind (?<="},
        {"(?<!b)", GUMBEL_ERROR_UNSUPPORTED, "lookbehind (?<!"},
        {"(?>b)", GUMBEL_ERROR_UNSUPPORTED, "an atomic group"},
        {"(?i)b", GUMBEL_ERROR_UNSUPPORTED, "flags and groups of this kind"},
        {"(a)\\1", GUMBEL_ERROR_UNSUPPORTED, "character 4: the back reference \\1"},
        {"\\k<a>", GUMBEL_ERROR_UNSUPPORTED, "the back reference \\k"},
        {"\\bword", GUMBEL_ERROR_UNSUPPORTED, "the word boundary \\b"},
        {"\\q", GUMBEL_ERROR_FORMAT, "the escape \\q is not known"},
        {"a\\", GUMBEL_ERROR_FORMAT, "character 2: a backslash at the end"},
        {"\\p{Greek}", GUMBEL_ERROR_UNSUPPORTED, "\\p{Greek} is not supported"},
        {"\\p{L", GUMBEL_ERROR_FORMAT, "\\p{ has no }"},
        {"\\p", GUMBEL_ERROR_UNSUPPORTED, "\\p{} is not supported"},
        {"[[:alpha:]]", GUMBEL_ERROR_UNSUPPORTED, "POSIX classes"},
        {"[a", GUMBEL_ERROR_FORMAT, "character 1: this [ has no ]"},
        {"[z-a]", GUMBEL_ERROR_FORMAT, "character 2: a range that ends before it begins"},
        {"[a-\\d]", GUMBEL_ERROR_FORMAT, "a range that ends before"},
        {"\\x4", GUMBEL_ERROR_FORMAT, "hexadecimal digits"},
        {"\\u{110000}", GUMBEL_ERROR_FORMAT, "hexadecimal digits"},
        {"\\uD83Dx", GUMBEL_ERROR_FORMAT, "half of a surrogate pair"},
        {"*a", GUMBEL_ERROR_FORMAT, "character 1: there is nothing to repeat"},
        {"a|+", GUMBEL_ERROR_FORMAT, "character 3: there is nothing to repeat"},
        {"a**", GUMBEL_ERROR_FORMAT, "character 3: a quantifier of a quantifier"},
        {"a{3,2}", GUMBEL_ERROR_FORMAT, "a quantifier from more to less"},
        {"a{1000001}", GUMBEL_ERROR_FORMAT, "or beyond 1000000"},
        {"(a", GUMBEL_ERROR_FORMAT, "character 1: this ( has no )"},
        {"a)", GUMBEL_ERROR_FORMAT, "character 2: this ) has no ("},
        {"(^a)*", GUMBEL_ERROR_UNSUPPORTED, "character 1: anchors and lookahead in a group"},
        {"(a$){2,3}", GUMBEL_ERROR_UNSUPPORTED, "character 1: anchors and lookahead in a group"},
        {"\xFF", GUMBEL_ERROR_FORMAT, "it is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_expressions *expressions = gb_expressions_create();
        gb_regex regex;
        gumbel_error error;
        assert_fails(
            gb_read_regex(expressions, cases[i].pattern, strlen(cases[i].pattern), NULL, &regex, &error),
            cases[i].status, &error, cases[i].message);
        gb_expressions_destroy(expressions);
    }
}

static void test_depth(void **state) {
    (void)state;
    char pattern[1001];
    memset(pattern, '(', 500);
    memset(pattern + 500, ')', 500);
    pattern[1000] = '\0';
    gb_expressions *expressions = gb_expressions_create();
    gb_regex regex;
    gumbel_error error;
    assert_fails(gb_read_regex(expressions, pattern, 1000, NULL, &regex, &error), GUMBEL_ERROR_LIMIT, &error,
                 "nested deeper than 200");
    gb_expressions_destroy(expressions);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_syntax),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_anchors),
                                       cmocka_unit_test(test_alternatives_share_a_place),
                                       cmocka_unit_test(test_written_characters),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
