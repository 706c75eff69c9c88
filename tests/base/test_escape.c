/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that a terminal shows and does not obey.
 */
#include "base/byte_buffer.h"
#include "base/text_sink.h"
#include "gumbel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_escaped(gumbel_escape_style style, const char *text, size_t length, const char *expected) {
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gumbel_escape(style, text, length, sink.write, sink.user);
    assert_string_equal(gb_buffer_string(&printed), expected);
    gb_buffer_free(&printed);
}

#define LINE(text, expected) assert_escaped(GUMBEL_ESCAPE_LINE, text, sizeof text - 1, expected)
#define TEXT(text, expected) assert_escaped(GUMBEL_ESCAPE_TEXT, text, sizeof text - 1, expected)
#define JSON(text, expected) assert_escaped(GUMBEL_ESCAPE_JSON, text, sizeof text - 1, expected)

static void what_can_be_seen_stays(void **state) {
    (void)state;
    LINE("", "");
    LINE("C:\\models/\"Gemma\" 4 (31B)~", "C:\\models/\"Gemma\" 4 (31B)~");
    LINE("Grüße, 日本語, שלום", "Grüße, 日本語, שלום");
    LINE("\xF0\x9F\x98\x80\xC2\xA0\xEF\xBF\xBD", "\xF0\x9F\x98\x80\xC2\xA0\xEF\xBF\xBD");
    LINE("\xDB\x9D", "\xDB\x9D"); /* U+06DD, a format that is drawn */
}

static void controls_are_spelled_out(void **state) {
    (void)state;
    LINE("a\n\t\rb", "a\\n\\t\\rb");
    LINE("\0\x01\x1b[2J\x7f", "\\x00\\x01\\x1b[2J\\x7f");
    LINE("\x1b]52;c;aGk=\a", "\\x1b]52;c;aGk=\\x07");
    LINE("\xC2\x80\xC2\x9B"
         "31m\xC2\x9F",
         "\\u0080\\u009b31m\\u009f");
}

static void ill_formed_bytes_are_spelled_out(void **state) {
    (void)state;
    LINE("\x9B"
         "31m\xFF",
         "\\x9b31m\\xff");
    LINE("\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80", "\\xc0\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
    LINE("a\xC2", "a\\xc2");
    LINE("\xE2\x80", "\\xe2\\x80");
}

static void what_cannot_be_seen_is_spelled_out(void **state) {
    (void)state;
    LINE("\xE2\x80\xAEgpj.exe\xE2\x81\xA6", "\\u202egpj.exe\\u2066");
    LINE("a\xE2\x80\x8B\xE2\x80\x8D\xC2\xAD\xEF\xBB\xBF", "a\\u200b\\u200d\\u00ad\\ufeff");
    LINE("\xE2\x80\xA8\xE2\x80\xA9", "\\u2028\\u2029"); /* separators of lines and paragraphs */
    LINE("\xE3\x85\xA4", "\\u3164");                    /* a letter without a shape */
    LINE("\xF3\xA0\x81\x81", "\\U000e0041");            /* a tag */
}

static void a_text_keeps_its_lines_and_joiners(void **state) {
    (void)state;
    TEXT("if:\n\tx\r\n", "if:\n\tx\\r\n");
    TEXT("\xE2\x80\x8C\xE2\x80\x8D\xE2\x80\x8F\xEF\xB8\x8F",
         "\xE2\x80\x8C\xE2\x80\x8D\xE2\x80\x8F\xEF\xB8\x8F");
    TEXT("\x1b\xC2\x9B\xE2\x80\xAE\xF3\xA0\x81\x81\xFF\0", "\\x1b\\u009b\\u202e\\U000e0041\\xff\\x00");
}

static void json_is_json(void **state) {
    (void)state;
    JSON("\"\\/\n\t\x1b\x7f", "\\\"\\\\/\\n\\u0009\\u001b\\u007f");
    JSON("\xC2\x9B\xE2\x80\xAE\xF3\xA0\x81\x81é", "\\u009b\\u202e\\udb40\\udc41é");
    JSON("\xFF\xC2", "\xEF\xBF\xBD\xEF\xBF\xBD");
}

/* Of every character and of every pair of bytes: nothing below a blank, no DEL, no C1, well-formed; and once
 * is enough. */
static void nothing_gets_through(void **state) {
    (void)state;
    for (unsigned first = 0; first < 256; first++)
        for (unsigned second = 0; second < 256; second++) {
            const char pair[] = {(char)first, (char)second};
            gb_byte_buffer once = {0}, twice = {0};
            gb_text_sink sink = {gb_buffer_write, &once}, again = {gb_buffer_write, &twice};
            gumbel_escape(GUMBEL_ESCAPE_LINE, pair, 2, sink.write, sink.user);
            for (size_t i = 0; i < once.size; i++) {
                unsigned char byte = (unsigned char)once.text[i];
                assert_true(byte >= 0x20 && byte != 0x7F && byte != 0xFF);
                assert_false(byte == 0xC2 && (unsigned char)once.text[i + 1] < 0xA0);
            }
            gumbel_escape(GUMBEL_ESCAPE_LINE, gb_buffer_string(&once), once.size, again.write, again.user);
            assert_string_equal(gb_buffer_string(&once), gb_buffer_string(&twice));
            gb_buffer_free(&once);
            gb_buffer_free(&twice);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_seen_stays),
        cmocka_unit_test(controls_are_spelled_out),
        cmocka_unit_test(ill_formed_bytes_are_spelled_out),
        cmocka_unit_test(what_cannot_be_seen_is_spelled_out),
        cmocka_unit_test(a_text_keeps_its_lines_and_joiners),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(nothing_gets_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
