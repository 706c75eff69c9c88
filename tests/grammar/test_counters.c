/* SPDX-License-Identifier: Apache-2.0
 *
 * Counted texts: against their definition, against the same grammar with its repeats written out, with masks
 * and random rollbacks, and large ones by the states that they take.
 */
#include "grammar/compile/grammar.h"
#include "grammar/match/matcher.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/schema.h"
#include "matching.h"
#include "naive.h"
#include "random_expression.h"
#include "small_vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORDS = (VOCABULARY_SIZE + 31) / 32, LONGEST = 6 };

static const gb_grammar_limits counted = {.repeat_states = 1, .product_states = 1};
static const gb_grammar_limits written_out = {.repeat_states = 1000000, .product_states = 1000000};

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

/* ---- Short texts --------------------------------------------------------------------------------------- */

/* NULL: the grammar has no text, or is too large where limits are for random ones. */
static gb_grammar *compile(const gb_expressions *expressions, gb_expression root,
                           const gb_grammar_limits *limits) {
    gb_grammar *grammar;
    gumbel_error error;
    const gumbel_status status = gb_grammar_compile(expressions, root, limits, &grammar, &error);
    if (status != GUMBEL_OK && (status != GUMBEL_ERROR_LIMIT || !limits))
        assert_fails(status, GUMBEL_ERROR_ARGUMENT, &error, "allows no text");
    return grammar;
}

static gb_matcher *matcher_of(const gb_grammar *grammar, const gb_token_trie *trie) {
    const gb_matcher_options options = {.end_tokens = end_tokens, .end_token_count = trie ? 1 : 0};
    gb_matcher *matcher;
    gumbel_error error;
    assert_ok(gb_matcher_create(grammar, trie, &options, &matcher, &error), &error);
    return matcher;
}

/* Goes on from a text that both matchers took with every longer one: the same bytes must be taken. */
static void compare_longer(gb_matcher *a, gb_matcher *b, const gb_expressions *expressions,
                           gb_expression root, char *text, unsigned length) {
    assert_int_equal(gb_matcher_may_end(a), gb_matcher_may_end(b));
    assert_int_equal(gb_matcher_may_end(a), naive_accepts(expressions, root, text, length));
    for (char byte = 'a'; byte <= 'c' && length < LONGEST; byte++) {
        const bool is_taken = gb_matcher_accept_byte(a, (uint8_t)byte);
        assert_int_equal(is_taken, gb_matcher_accept_byte(b, (uint8_t)byte));
        if (!is_taken)
            continue;
        text[length] = byte;
        compare_longer(a, b, expressions, root, text, length + 1);
        assert_true(gb_matcher_rollback(a, 1) && gb_matcher_rollback(b, 1));
    }
}

/* Where one of the two was not made it was too large, or the other one was not either. */
static void check_absent(const gb_expressions *expressions, gb_expression root, gb_grammar *other) {
    gb_grammar *grammar;
    gumbel_error error;
    const gumbel_status status = gb_grammar_compile(expressions, root, &counted, &grammar, &error);
    gb_grammar_destroy(grammar);
    if (other && status != GUMBEL_ERROR_LIMIT)
        assert_int_equal(gb_grammar_compile(expressions, root, &written_out, &grammar, &error),
                         GUMBEL_ERROR_LIMIT);
    gb_grammar_destroy(other);
}

static void compare_short_texts(const gb_expressions *expressions, gb_expression root) {
    char text[LONGEST + 1] = {0};
    gb_grammar *a = compile(expressions, root, &counted), *b = compile(expressions, root, &written_out);
    if (!a || !b) {
        check_absent(expressions, root, a ? a : b);
        return;
    }
    gb_matcher *of_a = matcher_of(a, NULL), *of_b = matcher_of(b, NULL);
    compare_longer(of_a, of_b, expressions, root, text, 0);
    gb_matcher_destroy(of_a);
    gb_matcher_destroy(of_b);
    gb_grammar_destroy(a);
    gb_grammar_destroy(b);
}

static gb_expression read_regex(gb_expressions *expressions, const char *text) {
    gb_regex regex = {0};
    gumbel_error error;
    assert_ok(gb_read_regex(expressions, text, strlen(text), NULL, &regex, &error), &error);
    return regex.expression;
}

/* Units of one byte, of several, with a loop inside; of which some are no code, and of the empty text. */
static const char *const units[] = {"[abc]", "ab|c|b", "a*b", "c(a|bb)", "a|ab", "a?"};
static const char *const patterns[] = {"[abc]*",  "a*",      "(?:ab)*", "a(?:bc)*b", "(?:aa|bbb)*c?",
                                       "a{2,4}b", "[ab]*cc", "",        "abc|b",     "(?:aaa)*|(?:bb)*"};

static void test_short_texts(void **state) {
    (void)state;
    for (size_t unit = 0; unit < sizeof units / sizeof *units; unit++)
        for (size_t pattern = 0; pattern < sizeof patterns / sizeof *patterns; pattern++)
            for (uint32_t least = 0; least <= 5; least++)
                for (uint32_t more = 0; more <= 4; more++) {
                    gb_expressions *all = gb_expressions_create();
                    const gb_expression repeat = gb_express_repeat(all, read_regex(all, units[unit]), least,
                                                                   more == 4 ? GB_NO_END : least + more);
                    const gb_expression text = read_regex(all, patterns[pattern]);
                    compare_short_texts(all, more % 2 ? gb_express_both(all, repeat, text)
                                                      : gb_express_both(all, text, repeat));
                    gb_expressions_destroy(all);
                }
}

/* The same within repeats, sequences, differences and more intersections. */
static void test_random_texts(void **state) {
    (void)state;
    random_state random = {7};
    for (int i = 0; i < 500; i++) {
        gb_expressions *all = gb_expressions_create();
        const gb_expression unit = read_regex(all, units[random_below(&random, 4)]);
        const uint32_t least = random_below(&random, 4), most = least + random_below(&random, 4);
        const gb_expression repeat = gb_express_repeat(all, unit, least, most);
        gb_expression root = gb_express_both(all, random_expression(all, &random, 2, true), repeat);
        for (int k = 0; k < 2; k++) {
            const gb_expression other = random_expression(all, &random, 1, true);
            const gb_expression pair[] = {root, other}, turned[] = {other, root};
            const uint32_t kind = random_below(&random, 6);
            root = kind == 0   ? gb_express_sequence(all, pair, 2)
                   : kind == 1 ? gb_express_sequence(all, turned, 2)
                   : kind == 2 ? gb_express_choice(all, pair, 2)
                   : kind == 3 ? gb_express_repeat(all, root, random_below(&random, 2), 3)
                   : kind == 4 ? gb_express_except(all, other, root)
                               : gb_express_both(all, root, other);
        }
        compare_short_texts(all, root);
        gb_expressions_destroy(all);
    }
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

static gb_grammar *compile_schema(const char *schema, const gb_grammar_limits *limits) {
    gumbel_error error;
    gb_expressions *all = gb_expressions_create();
    const gb_expression root = gb_schema_express_text(all, schema, strlen(schema), NULL, &error);
    assert_ok(gb_expressions_error(all, &error), &error);
    gb_grammar *grammar = compile(all, root, limits);
    gb_expressions_destroy(all);
    return grammar;
}

/* The mask of both; returns how many tokens it has. */
static uint32_t compare_masks(gb_matcher *a, gb_matcher *b, uint32_t *allowed) {
    uint32_t words[WORDS], others[WORDS], count = 0;
    gumbel_error error;
    assert_ok(gb_matcher_mask(a, words, &error), &error);
    assert_ok(gb_matcher_mask(b, others, &error), &error);
    assert_memory_equal(words, others, sizeof words);
    assert_int_equal(gb_matcher_forced(a, true), gb_matcher_forced(b, true));
    assert_int_equal(gb_matcher_may_end(a), gb_matcher_may_end(b));
    for (uint32_t token = 0; token < VOCABULARY_SIZE; token++)
        if (words[token / 32] >> (token % 32) & 1u)
            allowed[count++] = token;
    return count;
}

/* A random text, of which some tokens are taken back now and then. */
static void compare_walk(const gb_grammar *a, const gb_grammar *b, random_state *random) {
    gb_matcher *of_a = matcher_of(a, vocabulary.trie), *of_b = matcher_of(b, vocabulary.trie);
    uint32_t allowed[VOCABULARY_SIZE], token = 0;
    for (int step = 0; step < 40 && token != END_TOKEN; step++) {
        const uint32_t count = compare_masks(of_a, of_b, allowed);
        assert_true(count > 0);
        if (step % 8 == 7) {
            const size_t back = random_below(random, (uint32_t)gb_matcher_history(of_a) + 1);
            assert_true(gb_matcher_rollback(of_a, back) && gb_matcher_rollback(of_b, back));
            continue;
        }
        token = allowed[random_below(random, count)];
        assert_true(gb_matcher_accept_token(of_a, token) && gb_matcher_accept_token(of_b, token));
    }
    gb_matcher_destroy(of_a);
    gb_matcher_destroy(of_b);
}

static void test_masks(void **state) {
    (void)state;
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"pattern\":\"^[a-z]+(-[a-z]+)*$\",\"maxLength\":20}",
        "{\"type\":\"string\",\"pattern\":\"a.b\",\"minLength\":5,\"maxLength\":9}",
        "{\"type\":\"string\",\"pattern\":\"^https?://\",\"maxLength\":12}",
        "{\"type\":\"string\",\"pattern\":\"^[\\\"\\\\\\\\\\n\\u0001-\\u4e2d]*$\",\"minLength\":3,"
        "\"maxLength\":7}",
        "{\"type\":\"string\",\"pattern\":\"^(ab|c)*$\",\"minLength\":7,\"maxLength\":7}",
        "{\"type\":\"string\",\"format\":\"date\",\"minLength\":10,\"maxLength\":40}",
        "{\"type\":\"string\",\"minLength\":3,\"maxLength\":8}",
        "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^a\",\"maxLength\":4},\"maxItems\":"
        "5}",
        "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":6}"};
    random_state random = {3};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        gb_grammar *a = compile_schema(schemas[i], &counted), *b = compile_schema(schemas[i], &written_out);
        assert_true(a->automaton.count_count > 0 && b->automaton.gate_count == 0);
        for (int k = 0; k < 30; k++)
            compare_walk(a, b, &random);
        gb_grammar_destroy(a);
        gb_grammar_destroy(b);
    }
}

/* An a, or the end of the string; GB_NO_END behind it. */
static uint32_t next_token(gb_matcher *matcher) {
    if (gb_matcher_may_end(matcher))
        return GB_NO_END;
    const bool takes = gb_matcher_accept_token(matcher, 'a');
    return takes && gb_matcher_rollback(matcher, 1) ? 'a' : '"';
}

/* Between bounds that are far away masks are the same one, and next to them they are right. */
static void test_far_counts(void **state) {
    (void)state;
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"pattern\":\"^a+(-a+)*$\",\"minLength\":1000,\"maxLength\":2000}",
        "{\"type\":\"string\",\"minLength\":1000,\"maxLength\":2000}",
        "{\"type\":\"string\",\"pattern\":\"^(aa)*$\",\"minLength\":1999,\"maxLength\":2000}"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        gb_grammar *a = compile_schema(schemas[i], &counted), *b = compile_schema(schemas[i], &written_out);
        gb_matcher *of_a = matcher_of(a, vocabulary.trie), *of_b = matcher_of(b, vocabulary.trie);
        uint32_t allowed[VOCABULARY_SIZE];
        for (uint32_t token = '"'; token != GB_NO_END; token = next_token(of_a)) {
            assert_true(gb_matcher_accept_token(of_a, token) && gb_matcher_accept_token(of_b, token));
            compare_masks(of_a, of_b, allowed);
        }
        assert_int_equal(gb_matcher_history(of_a), 2002);
        assert_true(of_a->cache->masks.count < 700);
        gb_matcher_destroy(of_a);
        gb_matcher_destroy(of_b);
        gb_grammar_destroy(a);
        gb_grammar_destroy(b);
    }
}

/* ---- Large counts -------------------------------------------------------------------------------------- */

typedef struct large {
    const char *schema, *begin, *more; /* the text: begin, and then more as often as it fits */
    unsigned length;                   /* characters of the longest one */
} large;

static const large schemas[] = {
    {"{\"type\":\"string\",\"pattern\":\"^[a-z]+(-[a-z]+)*$\",\"maxLength\":2000}", "a-b", "c", 2000},
    {"{\"type\":\"string\",\"pattern\":\"^https?://\",\"maxLength\":4096}", "https://", "\xE4\xB8\xAD", 4096},
    {"{\"type\":\"string\",\"pattern\":\"^https?://\",\"maxLength\":100000}", "http://", "\\n", 100000},
    {"{\"type\":\"string\",\"pattern\":\"^https?://\",\"format\":\"uri\",\"maxLength\":100000}", "http://",
     "a", 100000},
    {"{\"type\":\"string\",\"pattern\":\"^(ab)*$\",\"minLength\":3000,\"maxLength\":3000}", "ab", "ab", 3000},
    {"{\"type\":\"string\",\"maxLength\":100000}", "\\u00e9", "\\ud83d\\ude00", 100000},
};

static bool take(gb_matcher *matcher, const char *text) {
    while (*text && gb_matcher_accept_byte(matcher, (uint8_t)*text))
        text++;
    return !*text;
}

static unsigned characters_of(const char *text) {
    if (text[0] != '\\' && (uint8_t)text[0] < 0x80)
        return (unsigned)strlen(text);
    return 1;
}

static void test_large(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        gb_grammar *grammar = compile_schema(schemas[i].schema, NULL);
        assert_non_null(grammar);
        assert_true(grammar->automaton.state_count < 1000);
        gb_matcher *matcher = matcher_of(grammar, NULL);
        assert_true(take(matcher, "\"") && take(matcher, schemas[i].begin));
        unsigned length = characters_of(schemas[i].begin);
        for (; length < schemas[i].length; length += characters_of(schemas[i].more))
            assert_true(take(matcher, schemas[i].more));
        assert_false(gb_matcher_accept_byte(matcher, (uint8_t)schemas[i].more[0]));
        assert_true(take(matcher, "\"") && gb_matcher_may_end(matcher));
        gb_matcher_destroy(matcher);
        gb_grammar_destroy(grammar);
    }
}

static void test_no_text(void **state) {
    (void)state;
    static const char *const none[] = {
        "{\"type\":\"string\",\"pattern\":\"^(ab)*$\",\"minLength\":3001,\"maxLength\":3001}",
        "{\"type\":\"string\",\"pattern\":\"^[a-z]{3,9}$\",\"minLength\":5000}",
        "{\"type\":\"string\",\"pattern\":\"^(aaa)*$\",\"minLength\":90001,\"maxLength\":90002}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(compile_schema(none[i], NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_texts), cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_masks),       cmocka_unit_test(test_far_counts),
        cmocka_unit_test(test_large),       cmocka_unit_test(test_no_text),
    };
    return cmocka_run_group_tests(tests, make_vocabulary, free_vocabulary);
}
