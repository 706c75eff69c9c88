/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks against every token tried by itself; matchers rolled back, cloned, and with caches that are too
 * small.
 */
#include "grammar/gbnf/gbnf.h"
#include "grammar/match/matcher.h"
#include "grammar/regex/regex.h"
#include "matching.h"
#include "random_expression.h"
#include "small_vocabulary.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORDS = (VOCABULARY_SIZE + 31) / 32, STEPS = 25 };

static small_vocabulary vocabulary;
static const uint32_t end_tokens[] = {END_TOKEN};

static bool takes_other_tokens; /* the grammar has tokens that are negated, so that any may be taken whole */

static int make_vocabulary(void **state) {
    (void)state;
    return make_small_vocabulary(&vocabulary) ? 0 : -1;
}

static int free_vocabulary(void **state) {
    (void)state;
    gb_token_trie_destroy(vocabulary.trie);
    return 0;
}

static gb_matcher *matcher_of(const gb_grammar *grammar, size_t cache_bytes) {
    gb_matcher_options options = {.end_tokens = end_tokens, .end_token_count = 1, .cache_bytes = cache_bytes};
    gb_matcher *matcher;
    gumbel_error error;
    assert_ok(gb_matcher_create(grammar, vocabulary.trie, &options, &matcher, &error), &error);
    return matcher;
}

static bool has_bit(const uint32_t *words, uint32_t token) {
    return words[token / 32] >> (token % 32) & 1u;
}

/* Whether the token's bytes are accepted one by one; special tokens are tried as they are. */
static bool is_accepted(gb_matcher *matcher, uint32_t token) {
    gb_token_bytes bytes = vocabulary.tokens[token];
    size_t taken = 0;
    if (bytes.size == 0 || token == END_TOKEN) {
        bool accepted = gb_matcher_accept_token(matcher, token);
        return accepted && gb_matcher_rollback(matcher, 1);
    }
    while (taken < bytes.size && gb_matcher_accept_byte(matcher, bytes.data[taken]))
        taken++;
    assert_true(gb_matcher_rollback(matcher, taken));
    if (taken < bytes.size && takes_other_tokens)
        return gb_matcher_accept_token(matcher, token) && gb_matcher_rollback(matcher, 1);
    return taken == bytes.size;
}

/* Compares the mask with all tokens; the allowed ones in allowed, how many are returned. */
static uint32_t check_mask(gb_matcher *matcher, uint32_t *words, uint32_t *allowed) {
    gumbel_error error;
    uint32_t count = 0;
    assert_ok(gb_matcher_mask(matcher, words, &error), &error);
    for (uint32_t token = 0; token < VOCABULARY_SIZE; token++) {
        assert_int_equal(has_bit(words, token), is_accepted(matcher, token));
        if (has_bit(words, token))
            allowed[count++] = token;
    }
    for (uint32_t token = VOCABULARY_SIZE; token < WORDS * 32; token++)
        assert_false(has_bit(words, token));
    assert_int_equal(has_bit(words, END_TOKEN), gb_matcher_may_end(matcher));
    assert_int_equal(gb_matcher_forced(matcher, true), count == 1 ? (int)allowed[0] : -1);
    return count;
}

/* A text's tokens. */
typedef struct walk {
    uint32_t tokens[STEPS];
    unsigned length;
} walk;

/* A matcher that took the same tokens has the same mask; one with a small cache, and a clone. */
static void check_others(const gb_grammar *grammar, const gb_matcher *matcher, const walk *taken,
                         const uint32_t *words) {
    uint32_t other[WORDS];
    gb_matcher *clone, *small = matcher_of(grammar, 1000);
    assert_ok(gb_matcher_clone(matcher, &clone, NULL), NULL);
    for (unsigned i = 0; i < taken->length; i++) {
        assert_true(gb_matcher_accept_token(small, taken->tokens[i]));
        assert_ok(gb_matcher_mask(small, other, NULL), NULL);
    }
    assert_ok(gb_matcher_mask(small, other, NULL), NULL);
    assert_memory_equal(words, other, sizeof other);
    assert_ok(gb_matcher_mask(clone, other, NULL), NULL);
    assert_memory_equal(words, other, sizeof other);
    assert_int_equal(gb_matcher_history(clone), taken->length);
    assert_true(gb_matcher_rollback(clone, taken->length) && gb_matcher_rollback(small, taken->length));
    assert_ok(gb_matcher_mask(clone, other, NULL), NULL);
    gb_matcher *fresh = matcher_of(grammar, 0);
    uint32_t first[WORDS];
    assert_ok(gb_matcher_mask(fresh, first, NULL), NULL);
    assert_memory_equal(first, other, sizeof other);
    assert_ok(gb_matcher_mask(small, other, NULL), NULL);
    assert_memory_equal(first, other, sizeof other);
    gb_matcher_destroy(fresh);
    gb_matcher_destroy(clone);
    gb_matcher_destroy(small);
}

/* A random text, with the mask checked at every step; sometimes steps are undone. */
static void check_walk(const gb_grammar *grammar, random_state *random) {
    gb_matcher *matcher = matcher_of(grammar, 0);
    uint32_t words[WORDS], allowed[VOCABULARY_SIZE];
    walk taken = {.length = 0};
    for (unsigned step = 0; step < STEPS; step++) {
        uint32_t count = check_mask(matcher, words, allowed);
        assert_true(count > 0);
        if (step % 8 == 7) {
            check_others(grammar, matcher, &taken, words);
            unsigned back = random_below(random, taken.length + 1);
            assert_true(gb_matcher_rollback(matcher, back));
            taken.length -= back;
            continue;
        }
        uint32_t token = allowed[random_below(random, count)];
        assert_true(gb_matcher_accept_token(matcher, token));
        taken.tokens[taken.length++] = token;
        if (token == END_TOKEN)
            break;
    }
    gb_matcher_destroy(matcher);
}

static void check_grammar(gb_expressions *expressions, gb_expression root) {
    gb_grammar *grammar;
    gumbel_error error;
    random_state random = {root};
    assert_ok(gb_grammar_compile(expressions, root, NULL, &grammar, &error), &error);
    for (int i = 0; i < 3; i++)
        check_walk(grammar, &random);
    gb_grammar_destroy(grammar);
    gb_expressions_destroy(expressions);
}

static void test_regexes(void **state) {
    (void)state;
    static const char *const texts[] = {"a*",
                                        "[a-c]{2,9}",
                                        ".*",
                                        ".{1,12}",
                                        ".{40}x",
                                        "\"([^\"\\\\\\x00-\\x1F]|\\\\[nrt\"\\\\]|\\\\u[0-9a-f]{4})*\"",
                                        "\"[^\"\\\\\\x00-\\x1F]{3,20}\"",
                                        "[^a]*",
                                        "[\\u4E00-\\u9FFF]+",
                                        "(\\{\"a\": \"[a-z ]{0,10}\"\\},?)+",
                                        "(true|null|the|then){1,3}",
                                        "\\P{L}{1,30}",
                                        "a{300,}",
                                        "(ab|a|b)*c"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        gb_expressions *expressions = gb_expressions_create();
        gb_regex regex;
        gumbel_error error;
        assert_ok(gb_read_regex(expressions, texts[i], strlen(texts[i]), NULL, &regex, &error), &error);
        check_grammar(expressions, regex.expression);
    }
}

static void test_grammars(void **state) {
    (void)state;
    static const char nested[] =
        "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root \"ab\"? \"a\" | \"b\" part | \"ca\"\n"
        "part ::= (\"c\" root){1,500} \"a\" | \"c\"{2,400} root";
    static const char *const texts[] = {
        "root ::= \"a\" root \"b\" | \"c\"",
        "root ::= value\nvalue ::= \"{\" (pair (\",\" \" \"? pair)*)? \"}\" | \"[\" (value (\", \" value)*)? "
        "\"]\" | text | "
        "[0-9]{1,20}\npair ::= text \":\" \" \"? value\ntext ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]* \"\\\"\"",
        "root ::= \"a\" <[330]> .{0,5} <[331]> | \"b\" !<[330]>+ <[330]>",
        "root ::= <[330]>* \"the\"?",
        "root ::= (\"<b>\" root \"</b>\" | [^<])*",
        nested};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        gb_expressions *expressions = gb_expressions_create();
        gb_expression root;
        gumbel_error error;
        assert_ok(gb_read_gbnf(expressions, texts[i], strlen(texts[i]), NULL, &root, &error), &error);
        takes_other_tokens = strchr(texts[i], '!');
        check_grammar(expressions, root);
    }
}

static void test_random_expressions(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_state random = {seed * 7919};
        gb_expressions *expressions = gb_expressions_create();
        gb_expression root = random_grammar(expressions, &random);
        gb_grammar *grammar;
        if (gb_grammar_compile(expressions, root, NULL, &grammar, NULL) == GUMBEL_OK) {
            gb_grammar_destroy(grammar);
            check_grammar(expressions, root);
        } else {
            gb_expressions_destroy(expressions);
        }
    }
}

static gb_grammar *grammar_of_regex(const char *text) {
    gb_expressions *expressions = gb_expressions_create();
    gb_regex regex;
    gumbel_error error;
    gb_grammar *grammar;
    assert_ok(gb_read_regex(expressions, text, strlen(text), NULL, &regex, &error), &error);
    assert_ok(gb_grammar_compile(expressions, regex.expression, NULL, &grammar, &error), &error);
    gb_expressions_destroy(expressions);
    return grammar;
}

static void test_end_and_history(void **state) {
    (void)state;
    gb_grammar *grammar = grammar_of_regex("a*");
    gb_matcher *matcher = matcher_of(grammar, 0);
    uint32_t words[WORDS];
    assert_true(gb_matcher_may_end(matcher));
    assert_true(gb_matcher_accept_token(matcher, END_TOKEN));
    assert_true(gb_matcher_may_end(matcher));
    assert_false(gb_matcher_accept_token(matcher, END_TOKEN));
    assert_false(gb_matcher_accept_token(matcher, 'a'));
    assert_false(gb_matcher_accept_byte(matcher, 'a'));
    assert_ok(gb_matcher_mask(matcher, words, NULL), NULL);
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(words[i], 0);
    assert_int_equal(gb_matcher_forced(matcher, true), -1);
    assert_false(gb_matcher_rollback(matcher, 2));
    assert_true(gb_matcher_rollback(matcher, 1));
    for (int i = 0; i < 5000; i++)
        assert_true(gb_matcher_accept_token(matcher, 'a'));
    assert_true(gb_matcher_history(matcher) >= GB_MATCHER_ROLLBACK - 1);
    assert_true(gb_matcher_rollback(matcher, GB_MATCHER_ROLLBACK - 1));
    assert_false(gb_matcher_accept_token(matcher, 'b'));
    assert_false(gb_matcher_accept_token(matcher, VOCABULARY_SIZE));
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* Matchers share what they find, those of the same options alone, and a grammar keeps some of it. */
static void test_shared_caches(void **state) {
    (void)state;
    enum { MATCHERS = 6 };
    gb_grammar *grammar = grammar_of_regex("a*b");
    gb_matcher *first = matcher_of(grammar, 0), *other = matcher_of(grammar, 12345), *next[MATCHERS];
    const gb_match_cache *cache = first->cache;
    uint32_t words[WORDS], again[WORDS];
    assert_ptr_not_equal(other->cache, cache);
    assert_ok(gb_matcher_mask(first, words, NULL), NULL);
    assert_int_equal(cache->masks.count, 1);
    assert_true(gb_matcher_accept_token(first, 'b'));
    gb_matcher_destroy(first);
    for (int i = 0; i < MATCHERS; i++) {
        next[i] = matcher_of(grammar, 0);
        assert_ptr_equal(next[i]->cache, cache);
        assert_int_equal(gb_matcher_history(next[i]), 0);
        assert_ok(gb_matcher_mask(next[i], again, NULL), NULL);
        assert_memory_equal(words, again, sizeof words);
    }
    assert_int_equal(cache->masks.count, 1);
    for (int i = 0; i < MATCHERS; i++)
        gb_matcher_destroy(next[i]);
    for (size_t i = 0; i < 3 * GB_IDLE_CACHES; i++)
        gb_matcher_destroy(matcher_of(grammar, 1000 + i));
    gb_matcher_destroy(other);
    gb_grammar_destroy(grammar);
}

/* Where several answers stand is kept while what they found is forgotten again and again. */
static void test_trimmed_histories(void **state) {
    (void)state;
    enum { MATCHERS = 3, TOKENS = 40 };
    gb_grammar *grammar = grammar_of_regex("(a{1,30}b|[a-c]{2,40}){1,20}");
    gb_matcher *small[MATCHERS], *large[MATCHERS], *clone;
    uint32_t words[WORDS], expected[WORDS];
    for (int i = 0; i < MATCHERS; i++) {
        small[i] = matcher_of(grammar, 1);
        large[i] = matcher_of(grammar, 0);
    }
    for (uint32_t step = 0; step < TOKENS; step++)
        for (uint32_t i = 0; i < MATCHERS; i++) {
            const uint32_t token = 'a' + (step * (i + 1) + step / 3) % 3;
            const bool is_taken = gb_matcher_accept_token(large[i], token);
            assert_int_equal(gb_matcher_accept_token(small[i], token), is_taken);
            assert_ok(gb_matcher_mask(large[i], expected, NULL), NULL);
            assert_ok(gb_matcher_mask(small[i], words, NULL), NULL);
            assert_memory_equal(words, expected, sizeof words);
        }
    assert_ok(gb_matcher_clone(small[0], &clone, NULL), NULL);
    const size_t back = gb_matcher_history(clone) / 2;
    assert_true(gb_matcher_rollback(clone, back) && gb_matcher_rollback(large[0], back));
    assert_ok(gb_matcher_mask(large[0], expected, NULL), NULL);
    assert_ok(gb_matcher_mask(clone, words, NULL), NULL);
    assert_memory_equal(words, expected, sizeof words);
    gb_matcher_destroy(clone);
    for (int i = 0; i < MATCHERS; i++) {
        gb_matcher_destroy(small[i]);
        gb_matcher_destroy(large[i]);
    }
    gb_grammar_destroy(grammar);
}

static void test_where(void **state) {
    (void)state;
    gb_grammar *grammar = grammar_of_regex("[a-c \\n\\t]x|");
    gb_matcher *matcher = matcher_of(grammar, 0);
    char text[200], cut[8];
    gb_matcher_where(matcher, text, sizeof text);
    assert_string_equal(text, "byte 0x09, a new line, a space, 'a', 'b', 'c' or the end");
    gb_matcher_where(matcher, cut, sizeof cut);
    assert_string_equal(cut, "byte 0x");
    assert_true(gb_matcher_accept_byte(matcher, 'a'));
    gb_matcher_where(matcher, text, sizeof text);
    assert_string_equal(text, "'x'");
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

static void test_bad_end_token(void **state) {
    (void)state;
    gb_grammar *grammar = grammar_of_regex("a");
    const uint32_t bad[] = {VOCABULARY_SIZE};
    gb_matcher_options options = {.end_tokens = bad, .end_token_count = 1};
    gb_matcher *matcher;
    gumbel_error error;
    assert_fails(gb_matcher_create(grammar, vocabulary.trie, &options, &matcher, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "end token 333 is none of the vocabulary's");
    gb_grammar_destroy(grammar);
}

/* A count in each of very many stacks. */
static void test_ambiguous(void **state) {
    (void)state;
    gb_grammar *grammar = grammar_of_regex("((a|aa|aaa){1,300}){1,300}b");
    gb_matcher *matcher = matcher_of(grammar, 0);
    gumbel_error error = {0};
    int taken = 0;
    while (taken < 2000 && gb_matcher_accept_byte(matcher, 'a'))
        taken++;
    assert_fails(gb_matcher_error(matcher, &error), GUMBEL_ERROR_LIMIT, &error, "make it less ambiguous");
    assert_true(gb_matcher_rollback(matcher, (size_t)taken - 5));
    assert_true(gb_matcher_accept_byte(matcher, 'b'));
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* Parts that stand in each of several ways to read the text are read once: their ways do not multiply. */
static void test_nested_ways(void **state) {
    (void)state;
    enum { DEPTH = 40 };
    static const char text[] =
        "root ::= \"a\" root? \"a\" | \"a\" root? \"b\" | \"a\" root? \"c\" | \"a\" root? \"ab\"";
    gb_expressions *expressions = gb_expressions_create();
    gb_expression root;
    uint32_t words[WORDS], other[WORDS], allowed[VOCABULARY_SIZE];
    assert_ok(gb_read_gbnf(expressions, text, strlen(text), NULL, &root, NULL), NULL);
    gb_grammar *grammar = compile_and_free(expressions, root);
    gb_matcher *matcher = matcher_of(grammar, 0), *small = matcher_of(grammar, 1);
    for (int i = 0; i < 2 * DEPTH; i++) {
        const uint8_t byte = (uint8_t)(i < DEPTH ? 'a' : i % 2 ? 'b' : 'c');
        assert_true(gb_matcher_accept_byte(matcher, byte) && gb_matcher_accept_byte(small, byte));
        assert_true(check_mask(matcher, words, allowed) > 0);
        assert_ok(gb_matcher_mask(small, other, NULL), NULL);
        assert_memory_equal(words, other, sizeof other);
    }
    assert_true(gb_matcher_may_end(matcher) && gb_matcher_may_end(small));
    gb_matcher_destroy(small);
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

/* A mask that costs more than it may is refused, and the matcher stays usable. */
static void test_too_much_work(void **state) {
    (void)state;
    gb_grammar *grammar = grammar_of_regex("x[a-c]{1,200}([a-c]{2,50}){1,90}");
    gb_matcher_options options = {.work = 150};
    gb_matcher *matcher;
    gumbel_error error;
    uint32_t words[WORDS];
    assert_ok(gb_matcher_create(grammar, vocabulary.trie, &options, &matcher, &error), &error);
    assert_ok(gb_matcher_mask(matcher, words, &error), &error);
    assert_true(gb_matcher_accept_token(matcher, 'x'));
    assert_fails(gb_matcher_mask(matcher, words, &error), GUMBEL_ERROR_LIMIT, &error,
                 "make it less ambiguous");
    assert_int_equal(gb_matcher_forced(matcher, true), -1);
    assert_true(gb_matcher_accept_token(matcher, 'b'));
    assert_false(gb_matcher_accept_token(matcher, 'x'));
    gb_matcher_destroy(matcher);
    gb_grammar_destroy(grammar);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_regexes),
                                       cmocka_unit_test(test_grammars),
                                       cmocka_unit_test(test_random_expressions),
                                       cmocka_unit_test(test_end_and_history),
                                       cmocka_unit_test(test_shared_caches),
                                       cmocka_unit_test(test_trimmed_histories),
                                       cmocka_unit_test(test_where),
                                       cmocka_unit_test(test_bad_end_token),
                                       cmocka_unit_test(test_ambiguous),
                                       cmocka_unit_test(test_nested_ways),
                                       cmocka_unit_test(test_too_much_work)};
    return cmocka_run_group_tests(tests, make_vocabulary, free_vocabulary);
}
