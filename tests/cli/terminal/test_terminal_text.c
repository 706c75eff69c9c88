/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's text on a terminal: however it is cut into pieces, nothing gets through that would be obeyed.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "base/text_sink.h"
#include "cli/terminal/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is shown of text that comes in pieces of so many bytes. Free with gb_free(). */
static char *shown(const char *text, size_t length, size_t piece) {
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    cli_terminal_text terminal = {.wrap = {.write = sink.write, .user = sink.user}};
    for (size_t at = 0; at < length; at += piece)
        cli_terminal_text_put(&terminal, text + at, at + piece < length ? piece : length - at);
    cli_terminal_text_end(&terminal);
    cli_terminal_text_free(&terminal);
    gb_buffer_string(&printed); /* ends it */
    return printed.text;
}

#define ASSERT_SHOWN(text, expected)                                                                         \
    for (size_t piece = 1; piece <= sizeof text; piece++) {                                                  \
        char *result = shown(text, sizeof text - 1, piece);                                                  \
        assert_string_equal(result, expected);                                                               \
        gb_free(result);                                                                                     \
    }

static void text_is_shown_as_it_is(void **state) {
    (void)state;
    ASSERT_SHOWN("", "");
    ASSERT_SHOWN("Grüße!\n\tx = 日本 + 😀;\n", "Grüße!\n\tx = 日本 + 😀;\n");
}

/* Writing the clipboard, clearing the screen, a colour by C1, and each of them cut anywhere. */
static void sequences_cut_anywhere_are_escaped(void **state) {
    (void)state;
    ASSERT_SHOWN("a\033]52;c;aGk=\a", "a\\x1b]52;c;aGk=\\x07");
    ASSERT_SHOWN("\033[2J\033[H", "\\x1b[2J\\x1b[H");
    ASSERT_SHOWN("\xC2\x9B"
                 "31mred\xC2\x9D",
                 "\\u009b31mred\\u009d");
    ASSERT_SHOWN("\xE2\x80\xAEtxt.exe", "\\u202etxt.exe");
    ASSERT_SHOWN("\b\r\x7f", "\\x08\\r\\x7f");
}

static void bytes_that_are_no_characters_are_escaped(void **state) {
    (void)state;
    ASSERT_SHOWN("\x9B"
                 "31m\xFF",
                 "\\x9b31m\\xff");
    ASSERT_SHOWN("\xC2\x1b[2J", "\\xc2\\x1b[2J");
    ASSERT_SHOWN("\xF0\x9F\x98x\xE2\x80", "\\xf0\\x9f\\x98x\\xe2\\x80");
    ASSERT_SHOWN("\xE0\x80\x9B\xED\xA0\x80", "\\xe0\\x80\\x9b\\xed\\xa0\\x80");
}

/* Of any three bytes in any pieces, nothing that a terminal obeys. */
static void no_bytes_get_through(void **state) {
    (void)state;
    static const char bytes[] = {'a',        '\033',     '[',        '\n',      (char)0xC2,
                                 (char)0x9B, (char)0xE2, (char)0x80, (char)0xF0};
    enum { COUNT = sizeof bytes };
    for (size_t number = 0; number < COUNT * COUNT * COUNT; number++) {
        const char text[] = {bytes[number % COUNT], bytes[number / COUNT % COUNT],
                             bytes[number / COUNT / COUNT]};
        char *whole = shown(text, sizeof text, sizeof text);
        for (size_t piece = 1; piece < sizeof text; piece++) {
            char *cut = shown(text, sizeof text, piece);
            assert_string_equal(cut, whole);
            gb_free(cut);
        }
        assert_true(!strchr(whole, '\033') && !strstr(whole, "\xC2\x9B"));
        gb_free(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_shown_as_it_is),
        cmocka_unit_test(sequences_cut_anywhere_are_escaped),
        cmocka_unit_test(bytes_that_are_no_characters_are_escaped),
        cmocka_unit_test(no_bytes_get_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
