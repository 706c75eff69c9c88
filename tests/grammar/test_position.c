/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an answer stands, as error messages say it.
 */
#include "grammar/position.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check(bool is_json, const char *text, const char *expected) {
    char where[GB_POSITION_SIZE];
    gb_describe_position(is_json, text, strlen(text), where);
    assert_string_equal(where, expected);
}

static void json_has_a_path(void **state) {
    (void)state;
    check(true, "", "at $");
    check(true, "{", "at $");
    check(true, "{\"na", "at $.na");
    check(true, "{\"people\": [{\"name\": \"a,]}\", \"age\": 1", "at $.people[0].age");
    check(true, "{\"people\": [{\"name\": \"b\\\"[\"}, [1, 2, ", "at $.people[1][2]");
    check(true, "{\"people\": [[{}, {}], []], ", "at $");
    check(true, "[1, \"\\", "at $[1]");
    check(true, "]]", "at $");
}

static void what_is_long_is_cut(void **state) {
    (void)state;
    char where[GB_POSITION_SIZE], text[400];
    memset(text, '[', sizeof text);
    gb_describe_position(true, text, sizeof text, where);
    assert_true(strncmp(where, "at $[0][0][0]", 13) == 0 && strlen(where) < sizeof where);
    for (size_t i = 0; i < 80; i++)
        memcpy(text + 5 * i, "{\"ab\"", 5);
    gb_describe_position(true, text, sizeof text, where);
    assert_true(strncmp(where, "at $.ab.ab", 10) == 0 && strlen(where) < sizeof where);
}

static void other_texts_have_an_end(void **state) {
    (void)state;
    check(false, "", "at the beginning");
    check(false, "1. e4 e5", "after 8 bytes, which end in \"1. e4 e5\"");
    check(false, "\xC3\xA4 0123456789012345678901234567890",
          "after 34 bytes, which end in \" 0123456789012345678901234567890\"");
    check(false,
          "\xC3\xA4"
          "0123456789012345678901234567890",
          "after 33 bytes, which end in \"0123456789012345678901234567890\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_a_path),
        cmocka_unit_test(what_is_long_is_cut),
        cmocka_unit_test(other_texts_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
