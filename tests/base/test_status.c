/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void messages_are_formatted(void **state) {
    (void)state;
    gumbel_error error;
    assert_int_equal(gb_fail(&error, GUMBEL_ERROR_FORMAT, "tensor %s: %d", "a", 7), GUMBEL_ERROR_FORMAT);
    assert_int_equal(error.status, GUMBEL_ERROR_FORMAT);
    assert_string_equal(error.message, "tensor a: 7");
    assert_int_equal(gb_fail(NULL, GUMBEL_ERROR_MEMORY, "unheard"), GUMBEL_ERROR_MEMORY);
}

static void errno_has_its_meaning(void **state) {
    (void)state;
    gumbel_error error;
    assert_int_equal(gb_fail_errno(&error, ENOENT, "%s", "x.gumbel"), GUMBEL_ERROR_IO);
    assert_string_equal(error.message, "x.gumbel: No such file or directory");
    assert_int_equal(gb_fail_errno(NULL, ENOENT, "unheard"), GUMBEL_ERROR_IO);
}

static gumbel_status inner(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_LIMIT, "full");
}

static gumbel_status outer(gumbel_error *error) {
    GB_TRY(GUMBEL_OK);
    GB_TRY(inner(error));
    return GUMBEL_OK;
}

static void prefixes_name_the_place(void **state) {
    (void)state;
    gumbel_error error;
    gumbel_status status = outer(&error);
    assert_int_equal(gb_prefix(&error, status, "node %d", 3), GUMBEL_ERROR_LIMIT);
    assert_string_equal(error.message, "node 3: full");
    assert_int_equal(gb_prefix(NULL, GUMBEL_ERROR_IO, "unheard"), GUMBEL_ERROR_IO);
}

static const char *long_text(void) {
    static char text[2000];
    memset(text, 'x', sizeof text - 1);
    return text;
}

static void long_messages_are_cut(void **state) {
    (void)state;
    const char *text = long_text();
    gumbel_error error;
    gb_fail(&error, GUMBEL_ERROR_FORMAT, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    gb_prefix(&error, GUMBEL_ERROR_FORMAT, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    gb_fail_errno(&error, EIO, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

/* The reason stands at the end, and no character is cut in two. */
static void a_cut_message_keeps_its_end(void **state) {
    (void)state;
    enum { COUNT = 6000 };
    char text[COUNT + 8];
    gumbel_error error;
    for (size_t shift = 0; shift < 3; shift++)
        for (size_t count = 300; count < COUNT; count += 1871) {
            size_t length = (size_t)sprintf(text, "%.*s", (int)shift, "ab");
            for (size_t i = 0; i < count / 2; i++)
                length += (size_t)sprintf(text + length, "\u00e9");
            gb_fail_errno(&error, ENOENT, "%s", text);
            const char *end = strstr(error.message, ": No such file or directory");
            bool is_cut = length + 27 >= sizeof error.message;
            assert_true(end && end[27] == '\0');
            assert_true((strstr(error.message, "\u2026") != NULL) == is_cut);
            assert_true(!is_cut || strlen(error.message) + 5 > sizeof error.message);
            assert_true(mbstowcs(NULL, error.message, 0) != (size_t)-1);
        }
}

/* The bytes before the ellipsis in a message of count letters, ESC, the euro sign and more. */
static size_t head_of(size_t count, gumbel_error *error) {
    gb_fail(error, GUMBEL_ERROR_FORMAT, "%.*s\x1b\xe2\x82\xac%s", (int)count, long_text(), long_text());
    const char *end = strstr(error->message, "\xe2\x80\xa6");
    assert_non_null(end);
    return (size_t)(end - error->message);
}

/* Where the middle is left out, escapes and characters are whole. */
static void a_cut_divides_no_escape(void **state) {
    (void)state;
    gumbel_error error;
    size_t cut = head_of(1000, &error);
    for (size_t before = 0; before < 10; before++) {
        size_t kept = before < 4 ? 0 : before < 7 ? 4 : 7 + (before - 7);
        assert_int_equal(head_of(cut - before, &error), cut - before + kept);
        static const char expected[] = "\\x1b\xe2\x82\xacxxx";
        assert_memory_equal(error.message + cut - before, expected, kept);
    }
}

/* The same at the end that stays: count letters behind ESC and the euro sign. */
static void the_kept_end_begins_with_a_whole_character(void **state) {
    (void)state;
    gumbel_error error;
    gb_fail(&error, GUMBEL_ERROR_FORMAT, "%s", long_text());
    size_t kept = strlen(strstr(error.message, "\xe2\x80\xa6") + 3);
    for (size_t more = 0; more < 9; more++) {
        gb_fail(&error, GUMBEL_ERROR_FORMAT, "%s\x1b\xe2\x82\xac%.*s", long_text(), (int)(kept - more),
                long_text());
        const char *end = strstr(error.message, "\xe2\x80\xa6") + 3;
        static const char expected[] = "x\\x1b\xe2\x82\xac";
        size_t whole = more < 3 ? 0 : more < 7 ? 3 : more;
        assert_int_equal(strlen(end), kept - more + whole);
        assert_memory_equal(end, expected + sizeof expected - 1 - whole, whole);
    }
}

static void names_in_messages_are_escaped(void **state) {
    (void)state;
    gumbel_error error;
    gb_fail(&error, GUMBEL_ERROR_FORMAT, "tensor %s: \xff", "a\x1b[2J\nb\xe2\x80\xae");
    gb_prefix(&error, GUMBEL_ERROR_FORMAT, "%s", "\xc2\x9b.gguf");
    assert_string_equal(error.message, "\\u009b.gguf: tensor a\\x1b[2J\\nb\\u202e: \\xff");
    gb_fail_errno(&error, ENOENT, "%s", "a\tb");
    assert_string_equal(error.message, "a\\tb: No such file or directory");
}

static void a_sent_error_has_nothing_else(void **state) {
    (void)state;
    static const char zeros[GUMBEL_MESSAGE_BYTES];
    gumbel_error error;
    memset(&error, 'x', sizeof error);
    gb_fail(&error, GUMBEL_ERROR_FORMAT, "tensor a");
    gumbel_error sent = gb_error_to_send(&error);
    assert_int_equal(sent.status, GUMBEL_ERROR_FORMAT);
    assert_string_equal(sent.message, "tensor a");
    assert_memory_equal(sent.message + 8, zeros, sizeof zeros - 8);
    error.status = GUMBEL_OK;
    sent = gb_error_to_send(&error);
    assert_int_equal(sent.status, GUMBEL_OK);
    assert_memory_equal(sent.message, zeros, sizeof zeros);
}

int main(void) {
    setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_formatted),
        cmocka_unit_test(errno_has_its_meaning),
        cmocka_unit_test(prefixes_name_the_place),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(a_cut_message_keeps_its_end),
        cmocka_unit_test(a_cut_divides_no_escape),
        cmocka_unit_test(the_kept_end_begins_with_a_whole_character),
        cmocka_unit_test(names_in_messages_are_escaped),
        cmocka_unit_test(a_sent_error_has_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
