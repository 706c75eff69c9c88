/* SPDX-License-Identifier: Apache-2.0
 *
 * Anything becomes JSON.
 */
#include "cli/base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(const char *given, const char *expected) {
    json_t *string = cli_json_text(given, strlen(given));
    assert_non_null(string);
    assert_string_equal(json_string_value(string), expected);
    json_decref(string);
}

static void text_is_utf8(void **state) {
    (void)state;
    assert_text("", "");
    assert_text("a\u00e9\u20ac\U0001f600", "a\u00e9\u20ac\U0001f600");
    assert_text("a\xff"
                "b",
                "a\ufffd"
                "b");
    assert_text("\xc3", "\ufffd");
    assert_text("\xe2\x82", "\ufffd\ufffd");
    assert_text("\xc0\xaf", "\ufffd\ufffd");                     /* overlong */
    assert_text("\xe0\x80\xaf", "\ufffd\ufffd\ufffd");           /* overlong */
    assert_text("\xed\xa0\x80", "\ufffd\ufffd\ufffd");           /* a surrogate */
    assert_text("\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"); /* above U+10FFFF */
    assert_text("\xf0\x9f\x98x", "\ufffd\ufffd\ufffdx");
    json_t *zero = cli_json_text("a\0b", 3);
    assert_int_equal(json_string_length(zero), 3);
    json_decref(zero);
}

/* Every string of two bytes, which jansson checks once more. */
static void no_bytes_are_refused(void **state) {
    (void)state;
    for (int first = 0; first < 256; first++)
        for (int second = 0; second < 256; second++) {
            const char text[] = {(char)first, (char)second};
            json_t *string = cli_json_text(text, 2);
            assert_non_null(string);
            json_decref(string);
        }
}

static void numbers_are_finite(void **state) {
    (void)state;
    json_t *number = cli_json_float(0.8F), *null = cli_json_number((double)NAN),
           *none = cli_json_float(-INFINITY);
    assert_true(json_real_value(number) == 0.8);
    assert_true(json_is_null(null) && json_is_null(none));
    json_decref(number);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_utf8),
        cmocka_unit_test(no_bytes_are_refused),
        cmocka_unit_test(numbers_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
