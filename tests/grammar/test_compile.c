/* SPDX-License-Identifier: Apache-2.0
 *
 * What the compiler refuses, its limits, and expressions that requests name: choices and any JSON.
 */
#include "base/memory.h"
#include "grammar/common/common.h"
#include "grammar/gbnf/gbnf.h"
#include "grammar/nodes.h"
#include "matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Compiling root must fail so. */
static void check_refused(gb_expressions *expressions, gb_expression root, const gb_grammar_limits *limits,
                          gumbel_status status, const char *message) {
    gb_grammar *grammar;
    gumbel_error error;
    assert_fails(gb_grammar_compile(expressions, root, limits, &grammar, &error), status, &error, message);
    assert_null(grammar);
    gb_expressions_destroy(expressions);
}

static gb_expression read_rules(gb_expressions *expressions, const char *rules) {
    gb_expression root;
    gumbel_error error;
    assert_ok(gb_read_gbnf(expressions, rules, strlen(rules), NULL, &root, &error), &error);
    return root;
}

static void test_left_recursion(void **state) {
    (void)state;
    static const char *const refused[] = {
        "root ::= root \"a\" | \"b\"", "root ::= x\nx ::= \"a\"? root \"b\" | \"c\"",
        "root ::= \"a\" x\nx ::= y* \"b\"\ny ::= x", "root ::= (\"\" | \"a\") root"};
    static const char *const named[] = {"rule 'root' begins with itself", "rule '", "rule '", "rule 'root'"};
    for (size_t i = 0; i < 4; i++) {
        gb_expressions *expressions = gb_expressions_create();
        gb_expression root = read_rules(expressions, refused[i]);
        check_refused(expressions, root, NULL, GUMBEL_ERROR_ARGUMENT, named[i]);
    }
}

static void test_refused(void **state) {
    (void)state;
    gb_expressions *all = gb_expressions_create();
    check_refused(all, gb_express_rule(all, "nowhere"), NULL, GUMBEL_ERROR_ARGUMENT,
                  "rule 'nowhere' is used and not defined");
    all = gb_expressions_create();
    check_refused(all, read_rules(all, "root ::= \"a\" root"), NULL, GUMBEL_ERROR_ARGUMENT,
                  "it allows no text at all");
    all = gb_expressions_create();
    gb_expression rule = read_rules(all, "root ::= \"a\" root? \"b\"");
    check_refused(all, gb_express_both(all, rule, rule), NULL, GUMBEL_ERROR_UNSUPPORTED,
                  "of what is not regular");
    all = gb_expressions_create();
    gb_any_order_item empty = {.item = gb_express_empty(all)};
    gb_any_order order = {.items = &empty, .count = 1, .most = GB_NO_END};
    check_refused(all, gb_express_any_order(all, &order), NULL, GUMBEL_ERROR_ARGUMENT,
                  "allows the empty text");
    all = gb_expressions_create();
    check_refused(all, 77, NULL, GUMBEL_ERROR_ARGUMENT, "expression 77 is none");
}

/* `count` differences of up to 100 lower-case letters and a word; all are equal, or the word has their
 * number. */
static gb_expression make_differences(gb_expressions *all, uint32_t count, bool are_equal) {
    gb_expression items[40];
    for (uint32_t i = 0; i < count; i++) {
        const char word[] = {'o', 'k', (char)('a' + (are_equal ? 0 : i % 26)), (char)('a' + i / 26 % 2)};
        const gb_expression letter = gb_express_characters(all, &(gb_character_range){'a', 'z'}, 1);
        const gb_expression letters = gb_express_repeat(all, letter, 0, 100);
        items[i] = gb_express_except(all, letters, gb_express_bytes(all, word, are_equal ? 2 : 4));
    }
    return gb_express_sequence(all, items, count);
}

/* Equal differences are compiled once: they take less work than those that differ. */
static void test_equal_products(void **state) {
    (void)state;
    const gb_grammar_limits limits = {.work = 20000};
    gb_grammar *grammar;
    gumbel_error error;
    gb_expressions *all = gb_expressions_create();
    check_refused(all, make_differences(all, 40, false), &limits, GUMBEL_ERROR_LIMIT,
                  "takes more than 20000 steps");
    all = gb_expressions_create();
    assert_ok(gb_grammar_compile(all, make_differences(all, 40, true), &limits, &grammar, &error), &error);
    gb_expressions_destroy(all);
    gb_grammar_destroy(grammar);
}

/* Each has one part that another lacks, or the same parts in another order. */
static void test_products_alike(void **state) {
    (void)state;
    gb_expressions *all = gb_expressions_create();
    const gb_expression letters =
        gb_express_repeat(all, gb_express_characters(all, &(gb_character_range){'a', 'z'}, 1), 1, GB_NO_END);
    gb_expression items[10];
    for (int i = 0; i < 2; i++) {
        const gb_expression no = gb_express_bytes(all, "no", 2), on = gb_express_bytes(all, "on", 2);
        const gb_expression either = gb_express_choice(all, (gb_expression[]){no, on}, 2);
        items[i * 5] = gb_express_except(all, letters, no);
        items[i * 5 + 1] = gb_express_except(all, letters, on);
        items[i * 5 + 2] = gb_express_except(all, either, on);
        items[i * 5 + 3] = gb_express_both(all, either, on);
        items[i * 5 + 4] = gb_express_both(all, gb_express_repeat(all, on, 1, 2), letters);
    }
    for (int i = 0; i < 10; i++)
        items[i] = gb_express_sequence(all, (gb_expression[]){items[i], gb_express_bytes(all, ",", 1)}, 2);
    gb_grammar *grammar = compile_and_free(all, gb_express_sequence(all, items, 10));
    assert_true(accepts_bytes(grammar, "on,no,no,on,onon,on,no,no,on,on,", 32));
    assert_false(accepts_bytes(grammar, "on,no,no,on,onon,no,no,no,on,on,", 32));
    assert_false(accepts_bytes(grammar, "on,no,no,on,onon,on,on,no,on,on,", 32));
    assert_false(accepts_bytes(grammar, "on,no,no,on,onon,on,no,on,on,on,", 32));
    assert_false(accepts_bytes(grammar, "on,no,no,on,onon,on,no,no,no,on,", 32));
    gb_grammar_destroy(grammar);
}

static void test_expression_errors(void **state) {
    (void)state;
    gumbel_error error;
    gb_expressions *all = gb_expressions_create();
    gb_expression a = gb_express_bytes(all, "a", 1);
    assert_int_equal(gb_express_repeat(all, a, 3, 2), 0);
    assert_fails(gb_expressions_error(all, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "at least 3 and at most 2");
    assert_int_equal(gb_express_bytes(all, "b", 1), 0);
    gb_expressions_destroy(all);
    all = gb_expressions_create();
    gb_define_rule(all, gb_express_rule(all, "x"), gb_express_empty(all));
    gb_define_rule(all, gb_express_rule(all, "x"), gb_express_empty(all));
    assert_fails(gb_expressions_error(all, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "rule 'x' is defined twice");
    gb_expressions_destroy(all);
    all = gb_expressions_create();
    gb_character_range backwards = {9, 8};
    gb_express_characters(all, &backwards, 1);
    assert_fails(gb_expressions_error(all, &error), GUMBEL_ERROR_ARGUMENT, &error, "U+0009 to U+0008");
    gb_expressions_destroy(all);
    all = gb_expressions_create();
    gb_expression nested = gb_express_bytes(all, "a", 1);
    for (int i = 0; i < 600 && nested; i++)
        nested = gb_express_repeat(all, nested, 0, 2);
    assert_fails(gb_expressions_error(all, &error), GUMBEL_ERROR_LIMIT, &error, "nested deeper than 500");
    gb_expressions_destroy(all);
}

static void test_limits(void **state) {
    (void)state;
    gb_expressions *all = gb_expressions_create();
    gb_expression doubled = gb_express_empty(all);
    for (int i = 0; i < 100; i++)
        doubled = gb_express_sequence(all, (gb_expression[]){doubled, doubled}, 2);
    check_refused(all, doubled, NULL, GUMBEL_ERROR_LIMIT, "more than 50000000 steps");
    all = gb_expressions_create();
    gb_expression root = read_rules(all, "root ::= \"abcdefghijklmnopqrstuvwxyz\"");
    const gb_grammar_limits states = {.states = 10};
    check_refused(all, root, &states, GUMBEL_ERROR_LIMIT, "more than 10 states");
    all = gb_expressions_create();
    root = read_rules(all, "root ::= [ab]* \"a\" [ab]{20}");
    check_refused(
        all,
        gb_express_both(all,
                        gb_express_choice(
                            all, (gb_expression[]){gb_express_nothing(all), gb_express_rule(all, "root")}, 2),
                        root),
        NULL, GUMBEL_ERROR_LIMIT,
        "an intersection or difference needs more than 100000 states or too much work");
}

static bool all_accepted(const gb_grammar *grammar, const char *const *texts, size_t count, bool accepted) {
    for (size_t i = 0; i < count; i++)
        if (accepts_bytes(grammar, texts[i], strlen(texts[i])) != accepted)
            return false;
    return true;
}

static void test_json(void **state) {
    (void)state;
    static const char *const good[] = {
        "{}",
        "[]",
        "\"\"",
        "-0.5e+3",
        "0",
        "true",
        "null",
        "[1, 2,3 ]",
        "{\"a\": {\"b\":[null,\"\\u00e9\\n\xC3\xA9\"]},\n  \"c\": \"\\ud83d\\ude00\"}"};
    static const char *const bad[] = {"",    "{",           "01",      "1.",     "+1",
                                      "tru", "[1,]",        "{\"a\"}", "\"\n\"", "\"\\q\"",
                                      "'a'", "\"\\ud83d\"", "[1  ]",   "1 ",     "{a:1}"};
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar = compile_and_free(expressions, gb_express_any_json(expressions));
    assert_true(all_accepted(grammar, good, sizeof good / sizeof *good, true));
    assert_true(all_accepted(grammar, bad, sizeof bad / sizeof *bad, false));
    gb_grammar_destroy(grammar);
    expressions = gb_expressions_create();
    grammar = compile_and_free(expressions, gb_express_any_json_object(expressions));
    assert_true(accepts_bytes(grammar, "{\"a\":[]}", 8));
    assert_false(accepts_bytes(grammar, "[]", 2));
    gb_grammar_destroy(grammar);
}

static void test_choices(void **state) {
    (void)state;
    static const char *const texts[] = {"yes", "no", "nobody"};
    static const size_t sizes[] = {3, 2, 6};
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar = compile_and_free(expressions, gb_express_choices(expressions, texts, sizes, 3));
    assert_true(all_accepted(grammar, texts, 3, true));
    assert_false(accepts_bytes(grammar, "nob", 3));
    gb_grammar_destroy(grammar);
    expressions = gb_expressions_create();
    gumbel_error error;
    gb_express_choices(expressions, texts, sizes, 0);
    assert_fails(gb_expressions_error(expressions, &error), GUMBEL_ERROR_ARGUMENT, &error, "there are none");
    gb_expressions_destroy(expressions);
}

/* Texts that begin alike, that begin others, that stand there twice, and the empty one. */
static void test_choices_that_overlap(void **state) {
    (void)state;
    static const char *const texts[] = {"abc", "ab", "", "abd", "ab", "\xC3\xA4", "b"};
    static const size_t sizes[] = {3, 2, 0, 3, 2, 2, 1};
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar = compile_and_free(expressions, gb_express_choices(expressions, texts, sizes, 7));
    assert_true(all_accepted(grammar, texts, 7, true));
    assert_false(accepts_bytes(grammar, "a", 1) || accepts_bytes(grammar, "abe", 3) ||
                 accepts_bytes(grammar, "abcd", 4) || accepts_bytes(grammar, "\xC3", 1));
    gb_grammar_destroy(grammar);
}

/* More of them than an answer may have ways to be read. */
static void test_many_choices(void **state) {
    (void)state;
    enum { CHOICES = 30000, LONGEST = 24 };
    char(*texts)[LONGEST] = calloc(CHOICES, sizeof *texts);
    const char **pointers = calloc(CHOICES, sizeof *pointers);
    size_t *sizes = calloc(CHOICES, sizeof *sizes);
    for (unsigned i = 0; i < CHOICES; i++) {
        sizes[i] = (size_t)snprintf(texts[i], LONGEST, "%x of %u", i * 2654435761u, i % 7);
        pointers[i] = texts[i];
    }
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar =
        compile_and_free(expressions, gb_express_choices(expressions, pointers, sizes, CHOICES));
    for (size_t i = 0; i < CHOICES; i += 1000)
        assert_true(accepts_bytes(grammar, texts[i], sizes[i]));
    assert_false(accepts_bytes(grammar, texts[5], sizes[5] - 1));
    gb_grammar_destroy(grammar);
    free(texts);
    free(pointers);
    free(sizes);
}

/* One in so many items, each of a set of 64 of the code points, is in the ranges; all are tried. */
static void test_characters(void **state) {
    (void)state;
    static const gb_character_range ranges[] = {{'b', 'd'},           {0x7F, 0x81},      {0x7FF, 0x801},
                                                {0xD7F0, 0xE00F},     {0xFFFE, 0x10001}, {0x3FFF0, 0x50000},
                                                {0x10FFF0, 0x10FFFF}, {0x900, 0x9FF},    {'c', 'e'}};
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar = compile_and_free(
        expressions, gb_express_characters(expressions, ranges, sizeof ranges / sizeof *ranges));
    gb_matcher *matcher;
    assert_ok(gb_matcher_create(grammar, NULL, NULL, &matcher, NULL), NULL);
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t bytes[4] = {(uint8_t)c};
        size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, taken = 0;
        for (size_t i = size; i-- > 0 && size > 1;)
            bytes[i] = (uint8_t)(i ? 0x80 | (c >> 6 * (size - 1 - i) & 0x3F)
                                   : (0xF00u >> size & 0xF0) | c >> 6 * (size - 1));
        bool expected = false;
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
            expected |= c >= ranges[i].first && c <= ranges[i].last && (c < 0xD800 || c > 0xDFFF);
        while (taken < size && gb_matcher_accept_byte(matcher, bytes[taken]))
            taken++;
        assert_int_equal(taken == size && gb_matcher_may_end(matcher), expected);
        assert_true(gb_matcher_rollback(matcher, taken));
    }
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* ---- Allocations that fail -------------------------------------------------------------------------------
 */

static bool refuse_later(void *user, size_t bytes) {
    (void)bytes;
    return (*(int *)user)-- != 0;
}

/* From text to mask. */
static gumbel_status live(gb_token_trie *trie, uint32_t *words, gumbel_error *error) {
    static const char rules[] =
        "root ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= root | [^\\x00-\\x1F,]{1,90} | .{2}";
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar = NULL;
    gb_matcher *matcher = NULL, *clone = NULL;
    gb_expression root;
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    if (expressions)
        status = gb_read_gbnf(expressions, rules, sizeof rules - 1, NULL, &root, error);
    if (status == GUMBEL_OK)
        status = gb_grammar_compile(expressions, root, NULL, &grammar, error);
    if (expressions)
        gb_expressions_destroy(expressions);
    if (status == GUMBEL_OK)
        status = gb_matcher_create(grammar, trie, NULL, &matcher, error);
    for (int i = 0; i < 3 && status == GUMBEL_OK; i++)
        status = gb_matcher_accept_token(matcher, '[') ? GUMBEL_OK : GUMBEL_ERROR_MEMORY;
    if (status == GUMBEL_OK)
        status = gb_matcher_clone(matcher, &clone, error);
    if (status == GUMBEL_OK)
        status = gb_matcher_mask(clone, words, error);
    gb_matcher_destroy(matcher);
    gb_matcher_destroy(clone);
    gb_grammar_destroy(grammar);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    uint8_t bytes[256];
    gb_token_bytes tokens[256];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
        tokens[i] = (gb_token_bytes){&bytes[i], 1};
    }
    gb_token_trie *trie;
    uint32_t words[8], expected[8];
    assert_ok(gb_token_trie_create(tokens, 256, &trie, NULL), NULL);
    gumbel_error first;
    assert_ok(live(trie, expected, &first), &first);
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    for (int failing = 0; status != GUMBEL_OK; failing++) {
        int left = failing;
        gumbel_error error = {0};
        gb_set_allocation_hook(refuse_later, &left);
        status = live(trie, words, &error);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
    assert_memory_equal(words, expected, sizeof words);
    gb_token_trie_destroy(trie);
}

/* What is left of (ab|é|c){0,} without words: which begin one another, are empty, or were never among them.
 */
static void test_without_words(void **state) {
    (void)state;
    static const char *const words[] = {"ab", "abab", "", "zz", "c\xC3\xA9", "a", "cc", "ccccab"};
    static const char *const kept[] = {"c", "\xC3\xA9", "ababab", "abc", "cab", "ccab", "c\303\251c", "ccc"};
    static const char *const lost[] = {"ab", "abab", "", "c\xC3\xA9", "cc", "ccccab", "zz", "a", "\xC3"};
    gb_expressions *all = gb_expressions_create();
    gb_expression items[8];
    for (size_t i = 0; i < 8; i++)
        items[i] = gb_express_bytes(all, words[i], strlen(words[i]));
    const gb_expression parts[] = {gb_express_bytes(all, "ab", 2), gb_express_bytes(all, "\xC3\xA9", 2),
                                   gb_express_bytes(all, "c", 1)};
    const gb_expression texts = gb_express_repeat(all, gb_express_choice(all, parts, 3), 0, GB_NO_END);
    gb_grammar *grammar =
        compile_and_free(all, gb_express_except(all, texts, gb_express_choice(all, items, 8)));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(accepts_bytes(grammar, kept[i], strlen(kept[i])));
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        assert_false(accepts_bytes(grammar, lost[i], strlen(lost[i])));
    gb_grammar_destroy(grammar);
}

/* Words that are all there is leave nothing. */
static void test_nothing_left(void **state) {
    (void)state;
    gb_expressions *all = gb_expressions_create();
    const gb_expression items[] = {gb_express_bytes(all, "ab", 2), gb_express_bytes(all, "a", 1)};
    const gb_expression maybe = gb_express_repeat(all, gb_express_bytes(all, "b", 1), 0, 1);
    const gb_expression texts = gb_express_sequence(all, (const gb_expression[]){items[1], maybe}, 2);
    check_refused(all, gb_express_except(all, texts, gb_express_choice(all, items, 2)), NULL,
                  GUMBEL_ERROR_ARGUMENT, "it allows no text at all");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_recursion),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_equal_products),
                                       cmocka_unit_test(test_products_alike),
                                       cmocka_unit_test(test_without_words),
                                       cmocka_unit_test(test_nothing_left),
                                       cmocka_unit_test(test_expression_errors),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_choices),
                                       cmocka_unit_test(test_choices_that_overlap),
                                       cmocka_unit_test(test_many_choices),
                                       cmocka_unit_test(test_characters),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
