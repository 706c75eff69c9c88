/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

/* Escapes and characters are whole where a message ends, and nothing follows what was left out. */
static void cut_messages_end_in_whole_characters(void **state) {
    (void)state;
    gumbel_error error;
    for (int shift = 0; shift < 8; shift++) {
        gb_fail(&error, GUMBEL_ERROR_FORMAT, "%.*s\x1b\xe2\x82\xac%*s", 500 + shift, long_text(), 20, "");
        const char *rest = error.message + 500 + shift;
        static const char *const expected[] = {
            "\\x1b\xe2\x82\xac", "\\x1b", "\\x1b", "\\x1b", "", "", "", ""};
        assert_string_equal(rest, expected[shift]);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_formatted),
        cmocka_unit_test(errno_has_its_meaning),
        cmocka_unit_test(prefixes_name_the_place),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(cut_messages_end_in_whole_characters),
        cmocka_unit_test(names_in_messages_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
