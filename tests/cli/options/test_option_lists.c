/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that are lists of texts, and words behind the operands.
 */
#include "cli/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct arguments {
    const char *first;
    cli_strings stops;
    cli_words rest;
} arguments;

static const cli_option table[] = {
    {.names = "-r --stop", .argument = "TEXT", .type = CLI_STRINGS, .offset = offsetof(arguments, stops)},
    {0},
};

static const cli_command command = {
    .name = "test",
    .operands = (const cli_operand[]){{"FIRST", offsetof(arguments, first), true, ""}, {0}},
    .rest = &(const cli_operand){"MORE", offsetof(arguments, rest), false, ""},
    .groups = (const cli_option_group[]){{.title = "All", .options = table}, {0}},
    .arguments_size = sizeof(arguments),
};

static arguments parsed;
static gb_byte_buffer notes;
static gumbel_error error;

static cli_parsed parse(const char *const *words) {
    int count = 0;
    while (words[count])
        count++;
    cli_free_arguments(&command, &parsed);
    gb_buffer_free(&notes);
    parsed = (arguments){0};
    return cli_parse(&command, count, (char *const *)(uintptr_t)words, &parsed, &notes, &error);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void texts_are_added(void **state) {
    (void)state;
    assert_int_equal(PARSE("a", "--stop", "x", "-r", "-y", "-rz", "--stop=x"), CLI_PARSED);
    assert_int_equal(parsed.stops.count, 4);
    static const char *const expected[] = {"x", "-y", "z", "x"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(parsed.stops.list[i], expected[i]);
    assert_int_equal(PARSE("a", "--stop"), CLI_WRONG);
    assert_non_null(strstr(error.message, "--stop needs a value: --stop TEXT"));
    assert_int_equal(PARSE("a", "--stop="), CLI_WRONG);
    assert_non_null(strstr(error.message, "--stop \"\": expected a text that is not empty; 64 of them"));
}

static void settings_add_and_empty(void **state) {
    (void)state;
    parsed = (arguments){0};
    assert_true(cli_set_option(command.groups, &parsed, "stop", "x", &error));
    assert_true(cli_set_option(command.groups, &parsed, "stop", "y", &error));
    assert_int_equal(parsed.stops.count, 2);
    assert_true(cli_set_option(command.groups, &parsed, "stop", NULL, &error));
    assert_int_equal(parsed.stops.count, 0);
    for (int i = 0; i < CLI_MOST_STRINGS; i++)
        assert_true(cli_set_option(command.groups, &parsed, "stop", "x", &error));
    assert_false(cli_set_option(command.groups, &parsed, "stop", "x", &error));
    assert_non_null(strstr(error.message, "64 of them at most"));
}

static void further_words_are_kept(void **state) {
    (void)state;
    assert_int_equal(PARSE("a"), CLI_PARSED);
    assert_int_equal(parsed.rest.count, 0);
    assert_int_equal(PARSE("a", "b", "--stop", "x", "c", "--", "-d"), CLI_PARSED);
    assert_string_equal(parsed.first, "a");
    assert_int_equal(parsed.rest.count, 3);
    assert_string_equal(parsed.rest.list[0], "b");
    assert_string_equal(parsed.rest.list[2], "-d");
    gb_byte_buffer joined = {0};
    cli_words_join(&parsed.rest, &joined);
    assert_string_equal(joined.text, "b c -d");
    gb_buffer_free(&joined);
    cli_free_arguments(&command, &parsed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_added),
        cmocka_unit_test(settings_add_and_empty),
        cmocka_unit_test(further_words_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
