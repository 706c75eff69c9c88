/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and pastes from the bytes of a terminal.
 */
#include "cli/terminal/keys.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BEGIN "\033[200~"
#define END "\033[201~"

/* Reads all keys of the bytes, of which the last ones are followed by the end of the input. */
static size_t keys_of(const char *bytes, size_t length, cli_terminal_keys *keys, wchar_t *found,
                      size_t capacity) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, length), (ssize_t)length);
    close(ends[1]);
    *keys = (cli_terminal_keys){.file = ends[0]};
    size_t count = 0;
    while (count < capacity && cli_next_key(keys, &found[count]) == 1)
        count++;
    close(ends[0]);
    return count;
}

static void assert_keys(const char *bytes, size_t length, const wchar_t *expected) {
    cli_terminal_keys keys;
    wchar_t found[64];
    size_t count = keys_of(bytes, length, &keys, found, 63);
    found[count] = L'\0';
    assert_int_equal(count, wcslen(expected));
    assert_memory_equal(found, expected, count * sizeof *found);
    cli_terminal_keys_free(&keys);
}

#define ASSERT_KEYS(bytes, expected) assert_keys(bytes, sizeof bytes - 1, expected)

static void characters_are_decoded(void **state) {
    (void)state;
    ASSERT_KEYS("aé日😀\n", L"aé日😀\n");
    ASSERT_KEYS("a\xFF"
                "b\xC3(\xE6\x97",
                L"ab("); /* what is no character is left out */
    ASSERT_KEYS("\xC2\x80\xC2\x9B", L"");
}

static void other_sequences_stay(void **state) {
    (void)state;
    ASSERT_KEYS("\033[A\033[201~\033", L"\033[A\033[201~\033");
    ASSERT_KEYS("\033[2\033[20\033\033b", L"\033[2\033[20\033\033b");
}

static void assert_paste(const char *bytes, size_t length, const char *expected) {
    cli_terminal_keys keys;
    wchar_t found[8];
    assert_int_equal(keys_of(bytes, length, &keys, found, 8), 3);
    assert_int_equal(found[0], L'<');
    assert_int_equal(found[1], CLI_KEY_PASTE);
    assert_int_equal(found[2], L'>');
    assert_string_equal(keys.paste.text, expected);
    assert_int_equal(keys.paste.size, strlen(expected));
    cli_terminal_keys_free(&keys);
}

#define ASSERT_PASTE(pasted, expected)                                                                       \
    assert_paste("<" BEGIN pasted END ">", sizeof "<" BEGIN pasted END ">" - 1, expected)

static void a_paste_is_one_key(void **state) {
    (void)state;
    ASSERT_PASTE("", "");
    ASSERT_PASTE("one", "one");
    ASSERT_PASTE("one\r/reset\rtwo", "one\n/reset\ntwo");
    ASSERT_PASTE("\003\004\026\032x\033[A\033[200~", "\003\004\026\032x\033[A\033[200~");
    ASSERT_PASTE("é\xFF", "é\xFF");
}

static void newlines_are_one_byte(void **state) {
    (void)state;
    ASSERT_PASTE("a\r\nb\n\rc\n\nd\r\re", "a\nb\nc\n\nd\n\ne");
    ASSERT_PASTE("a\n\r\n", "a");
    ASSERT_PASTE("\n", "");
    ASSERT_PASTE("a\0b", "ab");
}

static void a_paste_may_follow_an_escape(void **state) {
    (void)state;
    cli_terminal_keys keys;
    wchar_t found[8];
    static const char bytes[] = "\033" BEGIN "x" END;
    assert_int_equal(keys_of(bytes, sizeof bytes - 1, &keys, found, 8), 2);
    assert_int_equal(found[0], L'\033');
    assert_int_equal(found[1], CLI_KEY_PASTE);
    cli_terminal_keys_free(&keys);
}

static void a_paste_without_an_end_is_none(void **state) {
    (void)state;
    ASSERT_KEYS("a" BEGIN "/reset\n\033[201", L"a");
}

static int set_locale(void **state) {
    (void)state;
    return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_decoded),       cmocka_unit_test(other_sequences_stay),
        cmocka_unit_test(a_paste_is_one_key),           cmocka_unit_test(newlines_are_one_byte),
        cmocka_unit_test(a_paste_may_follow_an_escape), cmocka_unit_test(a_paste_without_an_end_is_none),
    };
    return cmocka_run_group_tests(tests, set_locale, NULL);
}
