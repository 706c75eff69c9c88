/* SPDX-License-Identifier: Apache-2.0
 *
 * Items that all differ: texts that begin others, masks against tokens that are taken byte by byte, rollback,
 * clones, caches that are too small, and what is refused.
 */
#include "base/memory.h"
#include "grammar/match/matcher.h"
#include "grammar/regex/regex.h"
#include "matching.h"
#include "random_expression.h"
#include "small_vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORDS = (VOCABULARY_SIZE + 31) / 32, STEPS = 40 };

static small_vocabulary vocabulary;
static const uint32_t end_tokens[] = {END_TOKEN};

static int make_vocabulary(void **state) {
    (void)state;
    return make_small_vocabulary(&vocabulary) ? 0 : -1;
}

static int free_vocabulary(void **state) {
    (void)state;
    gb_token_trie_destroy(vocabulary.trie);
    return 0;
}

static gb_expression express(gb_expressions *expressions, const char *pattern) {
    gb_regex regex = {0};
    gb_read_regex(expressions, pattern, strlen(pattern), NULL, &regex, NULL);
    return regex.expression;
}

/* [items, with separators]. */
static gb_expression express_list(gb_expressions *expressions, const char *item, const char *separator,
                                  uint32_t least, uint32_t most) {
    const gb_expression parts[] = {express(expressions, "\\["),
                                   gb_express_distinct(expressions, express(expressions, item),
                                                       express(expressions, separator), least, most),
                                   express(expressions, "\\]")};
    return gb_express_sequence(expressions, parts, 3);
}

static gb_grammar *list_of(const char *item, uint32_t least, uint32_t most) {
    gb_expressions *expressions = gb_expressions_create();
    return compile_and_free(expressions, express_list(expressions, item, ",", least, most));
}

static gb_matcher *matcher_of(const gb_grammar *grammar, size_t cache_bytes) {
    const gb_matcher_options options = {
        .end_tokens = end_tokens, .end_token_count = 1, .cache_bytes = cache_bytes};
    gb_matcher *matcher;
    gumbel_error error;
    assert_ok(gb_matcher_create(grammar, vocabulary.trie, &options, &matcher, &error), &error);
    return matcher;
}

static void take(gb_matcher *matcher, const char *text) {
    for (; *text; text++)
        assert_true(gb_matcher_accept_byte(matcher, (uint8_t)*text));
}

static bool may_be(gb_matcher *matcher, char byte) {
    return gb_matcher_accept_byte(matcher, (uint8_t)byte) && gb_matcher_rollback(matcher, 1);
}

/* ---- Texts --------------------------------------------------------------------------------------------- */

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *item;
        uint32_t least, most;
        const char *good[5], *bad[5];
    } cases[] = {
        {"[a-c]*x",
         0,
         GB_NO_END,
         {"[]", "[x]", "[ax,x,abx]", "[x,ax,aax,aaax,bx]"},
         {"[x,x]", "[ax,x,ax]", "[", "[ax,]"}},
        {"[ab]{1,2}", 2, GB_NO_END, {"[a,b,aa,ab,ba,bb]", "[a,aa]"}, {"[a]", "[a,a]", "[ab,b,ab]"}},
        {"[ab]{1,2}", 6, GB_NO_END, {"[bb,ba,ab,aa,b,a]"}, {"[bb,ba,ab,aa,b]"}},
        {"a+", 2, 3, {"[a,aa]", "[aaa,a,aa]"}, {"[a]", "[a,aa,aaa,aaaa]", "[aa,aa]"}},
        {"(a|ab)(c|bc)", 1, GB_NO_END, {"[abc,ac,abbc]"}, {"[abc,abc]", "[ac,abbc,abc,ac]"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_grammar *grammar = list_of(cases[i].item, cases[i].least, cases[i].most);
        for (size_t k = 0; k < 5; k++) {
            const char *good = cases[i].good[k], *bad = cases[i].bad[k];
            assert_true(!good || accepts_bytes(grammar, good, strlen(good)));
            assert_false(bad && accepts_bytes(grammar, bad, strlen(bad)));
        }
        gb_grammar_destroy(grammar);
    }
}

/* What can only repeat an item is not begun: there every text that begins so was there. */
static void test_no_dead_ends(void **state) {
    (void)state;
    gb_grammar *grammar = list_of("a[xy]?|b", 0, GB_NO_END);
    gb_matcher *matcher = matcher_of(grammar, 0);
    take(matcher, "[ax,ay");
    assert_true(may_be(matcher, ',') && may_be(matcher, ']'));
    take(matcher, ",a");
    assert_false(may_be(matcher, 'x') || may_be(matcher, 'y'));
    assert_true(may_be(matcher, ',') && may_be(matcher, ']'));
    take(matcher, ",");
    assert_false(may_be(matcher, 'a'));
    take(matcher, "b");
    assert_false(may_be(matcher, ','));
    take(matcher, "]");
    assert_true(gb_matcher_may_end(matcher));
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* An array in an item of another one, whose items need not differ. */
static void test_lists_of_lists(void **state) {
    (void)state;
    gb_expressions *expressions = gb_expressions_create();
    const gb_expression list = express_list(expressions, "[ab]+", ",", 0, GB_NO_END);
    gb_grammar *grammar = compile_and_free(expressions, gb_express_repeat(expressions, list, 2, 90));
    assert_true(accepts_bytes(grammar, "[a,b][a,b][]", 12));
    assert_false(accepts_bytes(grammar, "[a,b][a,a]", 10));
    gb_grammar_destroy(grammar);
}

/* Many items, among them one that is long. */
static void test_many(void **state) {
    (void)state;
    gb_grammar *grammar = list_of("[0-9]+", 0, GB_NO_END);
    gb_matcher *matcher = matcher_of(grammar, 50000);
    char text[16];
    take(matcher, "[0");
    for (int i = 1; i < 3000; i++) {
        snprintf(text, sizeof text, ",%d", i);
        take(matcher, text);
    }
    for (int i = 0; i < 3000; i++)
        take(matcher, i ? "1" : ",");
    take(matcher, ",2999");
    assert_false(may_be(matcher, ','));
    take(matcher, "9,3000");
    assert_true(may_be(matcher, ']'));
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

static bool has_bit(const uint32_t *words, uint32_t token) {
    return words[token / 32] >> (token % 32) & 1u;
}

static bool is_accepted(gb_matcher *matcher, uint32_t token) {
    if (!gb_matcher_accept_token(matcher, token))
        return false;
    return gb_matcher_rollback(matcher, 1);
}

/* Whether the token may end one item and another one, or begin one whose texts are few. */
static bool may_be_left_out(uint32_t token, char separator, bool few) {
    const gb_token_bytes bytes = vocabulary.tokens[token];
    size_t separators = 0;
    for (size_t i = 0; i < bytes.size; i++)
        separators += bytes.data[i] == (uint8_t)separator;
    return few ? separators > 0 && bytes.size > 1 : separators > 1;
}

static uint32_t check_mask(gb_matcher *matcher, char separator, bool few, uint32_t *words,
                           uint32_t *allowed) {
    gumbel_error error;
    uint32_t count = 0;
    assert_ok(gb_matcher_mask(matcher, words, &error), &error);
    for (uint32_t token = 0; token < VOCABULARY_SIZE; token++) {
        const bool is_in = has_bit(words, token), is_good = is_accepted(matcher, token);
        assert_true(is_in ? is_good : !is_good || may_be_left_out(token, separator, few));
        if (is_in)
            allowed[count++] = token;
    }
    return count;
}

/* Matchers with a cache that is too small, and clones, have the same masks. */
static void check_others(gb_matcher *matcher, gb_matcher *small, const uint32_t *words) {
    uint32_t other[WORDS];
    gb_matcher *clone;
    assert_ok(gb_matcher_mask(small, other, NULL), NULL);
    assert_memory_equal(words, other, sizeof other);
    assert_ok(gb_matcher_clone(matcher, &clone, NULL), NULL);
    assert_ok(gb_matcher_mask(clone, other, NULL), NULL);
    assert_memory_equal(words, other, sizeof other);
    gb_matcher_destroy(clone);
}

/* Items are short, so that many are repeated nearly; steps are undone now and then. */
static void check_walk(const gb_grammar *grammar, char separator, bool few, random_state *random) {
    gb_matcher *matcher = matcher_of(grammar, 0), *small = matcher_of(grammar, 1000);
    uint32_t words[WORDS], allowed[VOCABULARY_SIZE];
    for (unsigned step = 0; step < STEPS; step++) {
        const uint32_t count = check_mask(matcher, separator, few, words, allowed);
        check_others(matcher, small, words);
        assert_true(count > 0);
        if (random_below(random, 9) == 0) {
            const size_t back = random_below(random, (uint32_t)gb_matcher_history(matcher) + 1) / 2;
            assert_true(gb_matcher_rollback(matcher, back) && gb_matcher_rollback(small, back));
            continue;
        }
        uint32_t token = allowed[random_below(random, count)];
        for (int i = 0; i < 3 && vocabulary.tokens[token].size != 1; i++)
            token = allowed[random_below(random, count)];
        assert_true(gb_matcher_accept_token(matcher, token) && gb_matcher_accept_token(small, token));
        if (token == END_TOKEN)
            break;
    }
    gb_matcher_destroy(small);
    gb_matcher_destroy(matcher);
}

static void test_masks(void **state) {
    (void)state;
    static const struct {
        const char *item, *separator;
        uint32_t least, most;
        bool few;
    } cases[] = {{"\"[^\"\\\\\\x00-\\x1F]*\"", ",", 0, GB_NO_END, false},
                 {"[a-c]+", ",", 0, GB_NO_END, false},
                 {"[a-c]+", ",", 3, 9, false},
                 {"[a-c]+", ",", 0, 400, false},
                 {"[a-c]+", ",", 400, 900, false},
                 {"[ab]+", "c", 0, GB_NO_END, false},
                 {"[ab]+", "c", 3, 9, false},
                 {"\"[ab]*\"", ",", 2, GB_NO_END, false},
                 {"[ab]{1,2}", "c", 3, GB_NO_END, true},
                 {"b|a[ab]?", "c", 2, GB_NO_END, true},
                 {"0|[1-3][0-3]?", ",", 9, GB_NO_END, true},
                 {"[ab]{2}c{1,3}", ",", 0, 8, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_expressions *expressions = gb_expressions_create();
        gb_grammar *grammar =
            compile_and_free(expressions, express_list(expressions, cases[i].item, cases[i].separator,
                                                       cases[i].least, cases[i].most));
        random_state random = {i + 1};
        for (int walk = 0; walk < 15; walk++)
            check_walk(grammar, cases[i].separator[0], cases[i].few, &random);
        gb_grammar_destroy(grammar);
    }
}

/* A text that differs from all before it is masked as any other such text is. */
static void test_shared_masks(void **state) {
    (void)state;
    gb_grammar *grammar = list_of("\"[^\"\\\\\\x00-\\x1F]*\"", 0, GB_NO_END);
    gb_matcher *matcher = matcher_of(grammar, 0);
    uint32_t words[WORDS];
    take(matcher, "[\"the\",\"then\",\"x");
    assert_ok(gb_matcher_mask(matcher, words, NULL), NULL);
    const size_t count = matcher->cache->masks.count;
    take(matcher, "a b");
    assert_ok(gb_matcher_mask(matcher, words, NULL), NULL);
    take(matcher, "\",\"other\",\"thenn");
    assert_ok(gb_matcher_mask(matcher, words, NULL), NULL);
    assert_int_equal(matcher->cache->masks.count, count);
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* ---- Errors -------------------------------------------------------------------------------------------- */

static void check_refused(gb_expressions *expressions, gb_expression root, const char *reason) {
    gb_grammar *grammar;
    gumbel_error error = {0};
    assert_int_not_equal(gb_grammar_compile(expressions, root, NULL, &grammar, &error), GUMBEL_OK);
    assert_non_null(strstr(error.message, reason));
    gb_expressions_destroy(expressions);
}

static void test_refused(void **state) {
    (void)state;
    gb_expressions *all = gb_expressions_create();
    check_refused(all, express_list(all, "a*", ",", 0, 9), "allows the empty text");
    all = gb_expressions_create();
    check_refused(all, express_list(all, "[ab]{2}", ",", 5, 9), "no text at all");
    all = gb_expressions_create();
    check_refused(all, express_list(all, "a", ",", 3, 2), "at least 3 and at most 2");
    all = gb_expressions_create();
    check_refused(all, gb_express_distinct(all, gb_express_token(all, 1), 0, 0, 9), "are not regular");
    all = gb_expressions_create();
    const gb_expression rule = gb_express_rule(all, "r"), end = express(all, "a");
    const gb_expression again[] = {express(all, "b"), rule},
                        either[] = {gb_express_sequence(all, again, 2), end};
    gb_define_rule(all, rule, gb_express_choice(all, either, 2));
    check_refused(all, gb_express_distinct(all, rule, 0, 0, 9), "are not regular");
    all = gb_expressions_create();
    check_refused(all,
                  gb_express_distinct(all, gb_express_distinct(all, express(all, "a"), 0, 1, 1), 0, 0, 9),
                  "are not regular");
}

/* ---- Allocations that fail ----------------------------------------------------------------------------- */

static bool refuse_later(void *user, size_t bytes) {
    (void)bytes;
    return (*(int *)user)-- != 0;
}

/* [ab]+, separated by commas: a regular expression fails in its own way. */
static gb_expression express_simple(gb_expressions *expressions) {
    uint32_t set[8] = {0};
    set['a' / 32] = 3u << ('a' % 32);
    return gb_express_distinct(
        expressions, gb_express_repeat(expressions, gb_express_byte_set(expressions, set), 1, GB_NO_END),
        gb_express_bytes(expressions, ",", 1), 1, 900);
}

/* From expressions to a mask, with a cache that is moved at every step. */
static gumbel_status live(uint32_t *words) {
    gb_expressions *expressions = gb_expressions_create();
    const gb_matcher_options options = {.cache_bytes = 1};
    gb_grammar *grammar = NULL;
    gb_matcher *matcher = NULL;
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    if (expressions)
        status = gb_grammar_compile(expressions, express_simple(expressions), NULL, &grammar, NULL);
    if (status == GUMBEL_OK)
        status = gb_matcher_create(grammar, vocabulary.trie, &options, &matcher, NULL);
    for (const char *at = "ab,a,bb,a"; *at && status == GUMBEL_OK; at++)
        status = gb_matcher_accept_byte(matcher, (uint8_t)*at) ? GUMBEL_OK : GUMBEL_ERROR_MEMORY;
    if (status == GUMBEL_OK)
        status = gb_matcher_mask(matcher, words, NULL);
    if (expressions)
        gb_expressions_destroy(expressions);
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    uint32_t words[WORDS], expected[WORDS];
    assert_int_equal(live(expected), GUMBEL_OK);
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    for (int failing = 0; status != GUMBEL_OK; failing++) {
        int left = failing;
        gb_set_allocation_hook(refuse_later, &left);
        status = live(words);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
    assert_memory_equal(words, expected, sizeof words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_no_dead_ends),
        cmocka_unit_test(test_lists_of_lists), cmocka_unit_test(test_many),
        cmocka_unit_test(test_masks),          cmocka_unit_test(test_shared_masks),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, make_vocabulary, free_vocabulary);
}
