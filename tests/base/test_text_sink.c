/* SPDX-License-Identifier: Apache-2.0 */
#include "base/byte_buffer.h"
#include "base/text_sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void text_is_formatted_and_long_lines_are_cut(void **state) {
    (void)state;
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print(&sink, "%d of %s", 3, "four");
    gb_print_bytes(&sink, "!!", 1);
    assert_string_equal(gb_buffer_string(&printed), "3 of four!");
    gb_print(&sink, "%*s", 9000, "");
    assert_int_equal(printed.size, 10 + 4095);
    gb_buffer_free(&printed);
}

static void assert_json(const char *text, size_t length, const char *expected) {
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_json_string(&sink, text, length);
    assert_string_equal(gb_buffer_string(&printed), expected);
    gb_buffer_free(&printed);
}

#define REPLACEMENT "\xef\xbf\xbd"

static void json_strings_are_escaped(void **state) {
    (void)state;
    assert_json("", 0, "\"\"");
    assert_json("plain", 5, "\"plain\"");
    assert_json("a\"b\\c\n\t\x7f", 8, "\"a\\\"b\\\\c\\n\\u0009\\u007f\"");
    assert_json("a\0b", 3, "\"a\\u0000b\"");
    assert_json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

static void json_strings_are_utf8(void **state) {
    (void)state;
    assert_json("a\xff"
                "b",
                3, "\"a" REPLACEMENT "b\"");
    assert_json("\xc3", 1, "\"" REPLACEMENT "\"");
    assert_json("\xc0\x80", 2, "\"" REPLACEMENT REPLACEMENT "\"");                 /* overlong */
    assert_json("\xe0\x9f\xbf", 3, "\"" REPLACEMENT REPLACEMENT REPLACEMENT "\""); /* overlong */
    assert_json("\xed\xa0\x80", 3, "\"" REPLACEMENT REPLACEMENT REPLACEMENT "\""); /* a surrogate */
    assert_json("\xf4\x90\x80\x80", 4, "\"" REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT "\"");
    assert_json("\xf4\x8f\xbf\xbf", 4, "\"\xf4\x8f\xbf\xbf\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_formatted_and_long_lines_are_cut),
        cmocka_unit_test(json_strings_are_escaped),
        cmocka_unit_test(json_strings_are_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
