/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices of texts: which they are, and that their automaton is the smallest one.
 */
#include "grammar/common/common.h"
#include "grammar/compile/grammar.h"
#include "grammar/gbnf/gbnf.h"
#include "matching.h"
#include "random_expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 12, LONGEST = 5 };

static const char letters[] = "ab\xC3\xA4";

typedef struct choices {
    char texts[MOST][LONGEST + 1];
    size_t sizes[MOST], count;
} choices;

/* Short ones over few letters, so that many begin or end alike, come twice or are empty. */
static choices draw(random_state *random) {
    choices drawn = {.count = 2 + random_below(random, MOST - 1)};
    for (size_t i = 0; i < drawn.count; i++) {
        drawn.sizes[i] = random_below(random, LONGEST + 1);
        for (size_t k = 0; k < drawn.sizes[i]; k++)
            drawn.texts[i][k] = letters[random_below(random, 4)];
    }
    return drawn;
}

static gb_grammar *compile(const choices *from) {
    const char *pointers[MOST];
    for (size_t i = 0; i < from->count; i++)
        pointers[i] = from->texts[i];
    gb_expressions *expressions = gb_expressions_create();
    return compile_and_free(expressions, gb_express_choices(expressions, pointers, from->sizes, from->count));
}

static bool has(const choices *from, const char *text, size_t size) {
    for (size_t i = 0; i < from->count; i++)
        if (from->sizes[i] == size && memcmp(from->texts[i], text, size) == 0)
            return true;
    return false;
}

/* All texts of the letters up to LONGEST. */
static void check_texts(const choices *from, const gb_grammar *grammar, char *text, size_t size) {
    assert_int_equal(accepts_bytes(grammar, text, size), has(from, text, size));
    for (size_t i = 0; i < 4 && size < LONGEST; i++) {
        text[size] = letters[i];
        check_texts(from, grammar, text, size + 1);
    }
}

/* ---- How many states there must be --------------------------------------------------------------------- */

/* Texts up to LONGEST as bits, by their number in base 4: what may follow a prefix. */
typedef struct rests {
    uint8_t bits[(4 << (2 * LONGEST)) / 8];
} rests;

static size_t number_of(const char *text, size_t size) {
    size_t number = 1;
    for (size_t i = 0; i < size; i++)
        number = number * 4 + (size_t)(strchr(letters, text[i]) - letters);
    return number;
}

static rests rests_behind(const choices *from, const char *prefix, size_t size) {
    rests found = {{0}};
    for (size_t i = 0; i < from->count; i++)
        if (from->sizes[i] >= size && memcmp(from->texts[i], prefix, size) == 0) {
            const size_t number = number_of(from->texts[i] + size, from->sizes[i] - size);
            found.bits[number / 8] |= (uint8_t)(1u << number % 8);
        }
    return found;
}

/* Prefixes that differ in what may follow; where that is the empty text alone the whole grammar's end is. */
static size_t count_states(const choices *from) {
    static rests all[MOST * (LONGEST + 1)];
    size_t count = 0;
    bool has_end = false;
    for (size_t i = 0; i < from->count; i++)
        for (size_t size = 0; size <= from->sizes[i]; size++) {
            all[count] = rests_behind(from, from->texts[i], size);
            size_t k = 0;
            while (memcmp(&all[k], &all[count], sizeof all[k]) != 0)
                k++;
            if (k < count)
                continue;
            count++;
            const rests end = {{1u << 1}};
            has_end |= memcmp(&all[k], &end, sizeof end) == 0;
        }
    return count + !has_end;
}

static void test_random_choices(void **state) {
    (void)state;
    random_state random = {17};
    for (int i = 0; i < 300; i++) {
        char text[LONGEST + 1] = "";
        const choices drawn = draw(&random);
        gb_grammar *grammar = compile(&drawn);
        check_texts(&drawn, grammar, text, 0);
        assert_int_equal(grammar->automaton.state_count, count_states(&drawn));
        gb_grammar_destroy(grammar);
    }
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

/* Numbers of six digits have a state for each digit, and steps as they have bytes. */
static void check_numbers(size_t count) {
    gb_expressions *expressions = gb_expressions_create();
    gb_expression *items = calloc(count, sizeof *items);
    gumbel_error error;
    gb_grammar *grammar;
    for (size_t i = 0; i < count; i++) {
        char text[8];
        snprintf(text, sizeof text, "%06zu", i * 7 % count);
        items[i] = gb_express_bytes(expressions, text, 6);
    }
    const gb_grammar_limits limits = {.work = 30 * count};
    assert_ok(gb_grammar_compile(expressions, gb_express_choice(expressions, items, count), &limits, &grammar,
                                 &error),
              &error);
    assert_in_range(grammar->automaton.state_count, 6, 20);
    gb_grammar_destroy(grammar);
    gb_expressions_destroy(expressions);
    free(items);
}

static void test_sizes(void **state) {
    (void)state;
    check_numbers(1000);
    check_numbers(10000);
    check_numbers(100000);
}

/* Beside other alternatives, in a rule, as single characters, and where the empty text is left out. */
static void test_among_others(void **state) {
    (void)state;
    static const char rules[] = "root ::= (\"no\" | word | [x] | [0-9]+ | \"\" | \"not\" \"e\")* \"!\"\n"
                                "word ::= \"nobody\"";
    static const char *const good[] = {"!", "no!", "nonobody!", "note!", "not!", "x12x!", "nonote7!"};
    gb_expressions *expressions = gb_expressions_create();
    gb_expression root;
    gumbel_error error;
    assert_ok(gb_read_gbnf(expressions, rules, sizeof rules - 1, NULL, &root, &error), &error);
    gb_grammar *grammar = compile_and_free(expressions, root);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(accepts_bytes(grammar, good[i], strlen(good[i])), i != 4);
    gb_grammar_destroy(grammar);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_choices), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_among_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
