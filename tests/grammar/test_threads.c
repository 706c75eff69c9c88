/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of one grammar on several threads at once.
 */
#include "grammar/regex/regex.h"
#include "matching.h"
#include "small_vocabulary.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORDS = (VOCABULARY_SIZE + 31) / 32 };

static small_vocabulary vocabulary;

static void *follow_alone(void *grammar) {
    uint32_t words[WORDS];
    for (int i = 0; i < 50; i++) {
        gb_matcher *matcher = NULL;
        if (gb_matcher_create(grammar, vocabulary.trie, NULL, &matcher, NULL) != GUMBEL_OK)
            return grammar;
        for (uint32_t step = 0; step < 10; step++)
            if (gb_matcher_mask(matcher, words, NULL) != GUMBEL_OK || !(words[3] >> (1 + step % 3) & 1u) ||
                !gb_matcher_accept_token(matcher, 'a' + step % 3))
                return grammar;
        gb_matcher_destroy(matcher);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    static const char pattern[] = "([a-c]{1,9}| .*)x?[a-z]*";
    gb_expressions *expressions = gb_expressions_create();
    gb_regex regex;
    assert_true(make_small_vocabulary(&vocabulary));
    assert_ok(gb_read_regex(expressions, pattern, sizeof pattern - 1, NULL, &regex, NULL), NULL);
    gb_grammar *grammar = compile_and_free(expressions, regex.expression);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, follow_alone, grammar), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    gb_grammar_destroy(grammar);
    gb_token_trie_destroy(vocabulary.trie);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
