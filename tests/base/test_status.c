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

static void long_messages_are_cut(void **state) {
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    gumbel_error error;
    gb_fail(&error, GUMBEL_ERROR_FORMAT, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    gb_prefix(&error, GUMBEL_ERROR_FORMAT, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    gb_fail_errno(&error, EIO, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_formatted),
        cmocka_unit_test(errno_has_its_meaning),
        cmocka_unit_test(prefixes_name_the_place),
        cmocka_unit_test(long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
