/* SPDX-License-Identifier: Apache-2.0
 *
 * The matcher of stop strings against its definition, at every cut of a text.
 */
#include "golden.h"

#include "support/assertions.h"
#include "support/naive_stops.h"
#include "text/decode/stop_matcher.h"

enum { MOST_STRINGS = 8, MOST_BYTES = 4096, LONGEST_PIECE = 64 };

static gumbel_error error;

static gb_stop_matcher *matcher_of(const char *const *strings, size_t count, bool included) {
    gb_stop_matcher *matcher;
    assert_ok(gb_stop_matcher_create(strings, count, included, LONGEST_PIECE, &matcher, &error), &error);
    return matcher;
}

typedef struct shown_text {
    char bytes[MOST_BYTES];
    size_t length;
} shown_text;

static void take(gb_stop_matcher *matcher, shown_text *shown) {
    const char *text;
    size_t length;
    gb_stop_matcher_take(matcher, &text, &length);
    assert_true(gb_utf8_is_valid(text, length));
    assert_true(shown->length + length <= sizeof shown->bytes);
    memcpy(shown->bytes + shown->length, text, length);
    shown->length += length;
}

/* Adds a piece, and checks that just what must be held back is. */
static void add(gb_stop_matcher *matcher, const char *const *strings, size_t count, const char *text,
                size_t begin, size_t end, shown_text *shown) {
    gb_stop_matcher_add(matcher, text + begin, end - begin);
    take(matcher, shown);
    if (gb_stop_matcher_found(matcher) < 0)
        assert_int_equal(shown->length, end - naive_held(strings, count, text, end));
}

/* What was shown of a text that went in in pieces is what the definition says. */
static void check_shown(const gb_stop_matcher *matcher, const char *const *strings, size_t count,
                        bool included, const char *text, size_t length, const shown_text *shown) {
    naive_stop expected = naive_find(strings, count, text, length);
    assert_int_equal(gb_stop_matcher_found(matcher), expected.string);
    assert_int_equal(shown->length, included ? expected.end : expected.begin);
    assert_memory_equal(shown->bytes, text, shown->length);
}

/* The text in pieces of `step` characters, the first one of `first`. */
static void check_cut(const char *const *strings, size_t count, bool included, const char *text, size_t first,
                      size_t step) {
    gb_stop_matcher *matcher = matcher_of(strings, count, included);
    size_t length = strlen(text);
    for (int again = 0; again < 2; again++) {
        static shown_text shown;
        shown.length = 0;
        for (size_t at = 0, characters = first; at < length; characters = step) {
            size_t end = at;
            for (; characters > 0 && end < length; characters--)
                end += gb_utf8_size(text[end]);
            add(matcher, strings, count, text, at, end, &shown);
            at = end;
        }
        gb_stop_matcher_flush(matcher);
        take(matcher, &shown);
        check_shown(matcher, strings, count, included, text, length, &shown);
        gb_stop_matcher_restart(matcher);
        assert_int_equal(gb_stop_matcher_found(matcher), -1);
    }
    gb_stop_matcher_destroy(matcher);
}

static void check(const char *const *strings, size_t count, const char *text) {
    size_t length = strlen(text);
    for (int included = 0; included < 2; included++)
        for (size_t first = 1; first <= length && first <= LONGEST_PIECE / 4; first++)
            for (size_t step = 1; step <= 3; step++)
                check_cut(strings, count, included, text, first, step);
}

#define CHECK(text, ...)                                                                                     \
    check((const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *), text)

static void every_cut_gives_the_same(void **state) {
    (void)state;
    CHECK("a story\nUser: and more", "User:");
    CHECK("a story\nUser: and more", "\nUser:", "User:", "story\n");
    CHECK("abcabcabd and so on", "abcabd");                         /* falls back into itself */
    CHECK("xabcde", "abcdef", "cd");                                /* the nested one is complete first */
    CHECK("xabcdef", "abcdef", "bcdef", "def");                     /* complete together: the longest */
    CHECK("xabcdef", "def", "abcdef", "abcdef");                    /* of equal ones the first */
    CHECK("xabx", "ab", "abc", "abx");                              /* one is the beginning of others */
    CHECK("aaaaaaaab", "aaaab", "aab", "aaaaaaaaaaaa");             /* prefixes overlap */
    CHECK("nothing of it", "END");                                  /* none */
    CHECK("EN", "END");                                             /* the end while one may still come */
    CHECK("gr\xC3\xBC\xC3\x9F dich \xE2\x82\xAC!", "\xE2\x82\xAC"); /* characters of several bytes */
    CHECK("\xC3\xA9\xC3\xA8\xC3\xA9\xC3\xAA", "\xC3\xA9\xC3\xAA", "\xC3\xA8\xC3\xA8");
    CHECK("\xF0\x9F\x98\x80\xF0\x9F\x98\x81", "\xF0\x9F\x98\x81");
}

/* Few letters, so that strings overlap and nest in every way. */
static void random_strings(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 3000; n++) {
        uint64_t seed = n;
        static const char *const letters[] = {"a", "b", "\xC3\xA9", "\xC3\xA8"};
        char strings[MOST_STRINGS][32], text[128];
        const char *list[MOST_STRINGS];
        size_t count = 1 + below(&seed, MOST_STRINGS), kinds = 2 + below(&seed, 3);
        for (size_t i = 0; i < count; i++) {
            strings[i][0] = 0;
            for (uint64_t k = 1 + below(&seed, 6); k > 0; k--)
                strcat(strings[i], letters[below(&seed, kinds)]);
            list[i] = strings[i];
        }
        text[0] = 0;
        for (uint64_t k = below(&seed, 30); k > 0; k--)
            strcat(text, letters[below(&seed, kinds)]);
        check_cut(list, count, n % 2, text, 1 + below(&seed, 4), 1 + below(&seed, 4));
    }
}

/* A thousand strings of the same beginning. */
static void many_strings(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static char strings[COUNT][24];
    const char *list[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(strings[i], sizeof strings[i], "stop%04d.", i);
        list[i] = strings[i];
    }
    gb_stop_matcher *matcher = matcher_of(list, COUNT, false);
    static shown_text shown;
    static const char text[] = "stop 0 stop0001stop0731.";
    gb_stop_matcher_add(matcher, text, sizeof text - 1);
    take(matcher, &shown);
    assert_int_equal(gb_stop_matcher_found(matcher), 731);
    assert_int_equal(shown.length, strlen("stop 0 stop0001"));
    gb_stop_matcher_destroy(matcher);
}

static void a_string_from_outside(void **state) {
    (void)state;
    for (int included = 0; included < 2; included++) {
        gb_stop_matcher *matcher = matcher_of((const char *const[]){"<end>", "ab"}, 2, included);
        shown_text shown = {.length = 0};
        gb_stop_matcher_add(matcher, "xa", 2);
        gb_stop_matcher_stop(matcher, 0, "<end>", 5);
        gb_stop_matcher_add(matcher, "b", 1);
        take(matcher, &shown);
        assert_int_equal(gb_stop_matcher_found(matcher), 0);
        assert_int_equal(shown.length, included ? 7 : 2);
        assert_memory_equal(shown.bytes, "xa<end>", shown.length);
        gb_stop_matcher_restart(matcher);
        gb_stop_matcher_add(matcher, "ab", 2);
        gb_stop_matcher_stop(matcher, 0, "<end>", 5); /* too late */
        assert_int_equal(gb_stop_matcher_found(matcher), 1);
        gb_stop_matcher_destroy(matcher);
    }
}

static void bad_strings_are_named(void **state) {
    (void)state;
    gb_stop_matcher *matcher;
    const char *const empty[] = {"a", ""}, *const none[] = {NULL}, *const broken[] = {"a", "b", "\xC3"};
    assert_fails(gb_stop_matcher_create(empty, 2, false, 8, &matcher, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "stop string 1 of 2 is empty");
    assert_fails(gb_stop_matcher_create(none, 1, false, 8, &matcher, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "stop string 0 of 1 is NULL");
    assert_fails(gb_stop_matcher_create(NULL, 1, false, 8, &matcher, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "stop string 0 of 1 is NULL");
    assert_fails(gb_stop_matcher_create(broken, 3, false, 8, &matcher, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "stop string 2 of 3 is not UTF-8");
    assert_null(matcher);
}

static bool refuse_later(void *user, size_t bytes) {
    (void)bytes;
    return (*(int *)user)-- > 0;
}

static void memory_may_fail(void **state) {
    (void)state;
    for (int allowed = 0; allowed < 4; allowed++) {
        gb_stop_matcher *matcher;
        int left = allowed;
        gb_set_allocation_hook(refuse_later, &left);
        gumbel_status status =
            gb_stop_matcher_create((const char *const[]){"ab"}, 1, false, 8, &matcher, &error);
        gb_set_allocation_hook(NULL, NULL);
        assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "no memory for 1 stop strings");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_same),
        cmocka_unit_test(random_strings),
        cmocka_unit_test(many_strings),
        cmocka_unit_test(a_string_from_outside),
        cmocka_unit_test(bad_strings_are_named),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
