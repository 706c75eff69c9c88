/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines wrapped at words while they come. Each text is put in as a whole and by characters: the result
 * must not depend on how it was cut.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "base/text_sink.h"
#include "cli/terminal/word_wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t character_size(const char *text) {
    unsigned char byte = (unsigned char)*text;
    return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/* What a terminal of so many columns is sent. step: characters that come at once. Free with gb_free(). */
static char *wrapped(unsigned columns, const char *text, size_t step) {
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    cli_word_wrap wrap = {.write = sink.write, .user = sink.user, .columns = columns};
    while (*text) {
        size_t size = 0;
        for (size_t i = 0; i < step && text[size]; i++)
            size += character_size(text + size);
        cli_word_wrap_put(&wrap, text, size);
        text += size;
    }
    cli_word_wrap_end(&wrap);
    cli_word_wrap_free(&wrap);
    gb_buffer_string(&printed); /* ends it */
    return printed.text;
}

static void assert_wrapped(unsigned columns, const char *text, const char *expected) {
    for (size_t step = 1; step < 4; step++) {
        char *result = wrapped(columns, text, step == 3 ? strlen(text) + 1 : step);
        assert_string_equal(result, expected);
        gb_free(result);
    }
}

static void lines_end_at_words(void **state) {
    (void)state;
    assert_wrapped(10, "", "");
    assert_wrapped(10, "one two three four", "one two\nthree four");
    assert_wrapped(10, "one  two   three", "one  two\nthree");
    assert_wrapped(9, "one two three four\n\nfive\n", "one two\nthree\nfour\n\nfive\n");
    assert_wrapped(10, "ten and ten\nand", "ten and\nten\nand");
    assert_wrapped(10, "1234567890 1234567890", "1234567890\n1234567890");
    assert_wrapped(10, "123456789 0 ", "123456789\n0 ");
    assert_wrapped(10, "a\tb c", "a\tb\nc");
}

static void without_columns_nothing_changes(void **state) {
    (void)state;
    assert_wrapped(0, "one two three  \n\tfour five ", "one two three  \n\tfour five ");
}

static void long_words_are_not_broken(void **state) {
    (void)state;
    /* Its last three columns stand in a row that has room for more. */
    assert_wrapped(10, "see https://example.org/a/b for it", "see\nhttps://example.org/a/b for it");
    assert_wrapped(10, "https://example.org ok", "https://example.org\nok");
    assert_wrapped(10, "12345678901 x", "12345678901 x"); /* the row below has room */
}

static void code_and_tables_are_left_alone(void **state) {
    (void)state;
    assert_wrapped(10, "```c\nint one, two, three;\n```\none two three",
                   "```c\nint one, two, three;\n```\none two\nthree");
    assert_wrapped(10, "~~~\n```\na b c d e f g h\n~~~\none two three",
                   "~~~\n```\na b c d e f g h\n~~~\none two\nthree");
    assert_wrapped(10, "    int one, two;\none two three", "    int one, two;\none two\nthree");
    assert_wrapped(10, "\tint one, two;", "\tint one, two;");
    assert_wrapped(10, "| one | two | three |", "| one | two | three |");
    assert_wrapped(10, "```x``` is code, too", "```x``` is\ncode, too");
}

static void lists_are_prose(void **state) {
    (void)state;
    assert_wrapped(12, "- one two three", "- one two\nthree");
    assert_wrapped(12, "    - one two three", "    - one\ntwo three");
    assert_wrapped(12, "    12. one two", "    12. one\ntwo");
    assert_wrapped(12, "   aaaa bbbbbb cccccccc d", "   aaaa\nbbbbbb\ncccccccc d");
}

static void wide_characters_take_two_columns(void **state) {
    (void)state;
    assert_wrapped(10, "日本語のテキスト", "日本語のテ\nキスト");
    assert_wrapped(10, "ab 日本語のテ", "ab 日本語\nのテ");
    assert_wrapped(10, "日本語の文。次", "日本語の\n文。次"); /* a full stop begins no line */
    assert_wrapped(11, "日本語の「次", "日本語の\n「次");     /* an opening bracket ends none */
    assert_wrapped(10, "grüße grüße", "grüße\ngrüße");
    assert_wrapped(11, "e\xCC\x81t\xC3\xA9 e\xCC\x81t\xC3\xA9 oui",
                   "e\xCC\x81t\xC3\xA9 e\xCC\x81t\xC3\xA9 oui");
}

/* A family is one cluster of four persons, a flag one of two letters. */
static void clusters_are_kept_together(void **state) {
    (void)state;
#define FAMILY "👨\xE2\x80\x8D👩\xE2\x80\x8D👧"
    assert_wrapped(10, "abcdef" FAMILY, "abcdef\n" FAMILY);
    assert_wrapped(10, "abcdefgh 👍🏽", "abcdefgh\n👍🏽");
}

static void blanks_that_join_do_not_end_lines(void **state) {
    (void)state;
    assert_wrapped(10, "about 10\xC2\xA0kg of it", "about\n10\xC2\xA0kg of\nit");
}

/* Until the next word comes nobody knows that there is no room; the words before are out by then. */
static void words_are_held_back_no_longer_than_needed(void **state) {
    (void)state;
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    cli_word_wrap wrap = {.write = sink.write, .user = sink.user, .columns = 20};
    cli_word_wrap_put(&wrap, "one two", 7);
    assert_string_equal(gb_buffer_string(&printed), "one");
    cli_word_wrap_put(&wrap, " ", 1);
    assert_string_equal(gb_buffer_string(&printed), "one two");
    cli_word_wrap_put(&wrap, "\n```\nint on", 11);
    assert_string_equal(gb_buffer_string(&printed), "one two \n```\nint on");
    cli_word_wrap_end(&wrap);
    cli_word_wrap_free(&wrap);
    gb_buffer_free(&printed);
}

static void the_width_may_change(void **state) {
    (void)state;
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    cli_word_wrap wrap = {.write = sink.write, .user = sink.user, .columns = 20};
    cli_word_wrap_put(&wrap, "one two three ", 14);
    wrap.columns = 10; /* the terminal has moved "ree" to a row of its own */
    cli_word_wrap_put(&wrap, "four five six ", 14);
    wrap.columns = 30;
    cli_word_wrap_put(&wrap, "seven eight nine", 16);
    cli_word_wrap_end(&wrap);
    assert_string_equal(gb_buffer_string(&printed), "one two three four\nfive six seven eight nine");
    cli_word_wrap_free(&wrap);
    gb_buffer_free(&printed);
}

/* Of any text: the same characters but for blanks, and no line of words goes over the last column. */
static void random_texts_keep_their_words(void **state) {
    (void)state;
    srand(7);
    for (int round = 0; round < 500; round++) {
        char text[256];
        size_t length = 0;
        while (length < sizeof text - 12) {
            int kind = rand() % 8;
            length += (size_t)sprintf(text + length, "%s",
                                      kind == 0   ? "\n"
                                      : kind == 1 ? " "
                                      : kind == 2 ? "日"
                                                  : "");
            for (int letters = 1 + rand() % 7; letters > 0; letters--)
                text[length++] = (char)('a' + rand() % 26);
            text[length++] = ' ';
        }
        text[length] = '\0';
        unsigned columns = 10 + (unsigned)(rand() % 20);
        char *result = wrapped(columns, text, 1 + (size_t)(rand() % 9));
        const char *from = text, *to = result;
        unsigned column = 0;
        for (; *from || *to; from += *from != 0, to += *to != 0) {
            from += strspn(from, " \n");
            for (; *to == ' ' || *to == '\n'; to++)
                column = *to == '\n' ? 0 : column + 1;
            assert_int_equal(*from, *to);
            unsigned char byte = (unsigned char)*to;
            column += byte >= 0xC0 ? 2 : byte >= 0x20 && byte < 0x80;
            assert_in_range(column, 0, columns);
        }
        gb_free(result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_at_words),
        cmocka_unit_test(without_columns_nothing_changes),
        cmocka_unit_test(long_words_are_not_broken),
        cmocka_unit_test(code_and_tables_are_left_alone),
        cmocka_unit_test(lists_are_prose),
        cmocka_unit_test(wide_characters_take_two_columns),
        cmocka_unit_test(clusters_are_kept_together),
        cmocka_unit_test(blanks_that_join_do_not_end_lines),
        cmocka_unit_test(words_are_held_back_no_longer_than_needed),
        cmocka_unit_test(the_width_may_change),
        cmocka_unit_test(random_texts_keep_their_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
