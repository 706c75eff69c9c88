/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of command lines, on a table of its own.
 */
#include "cli/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct inner {
    cli_integer count;
    cli_number mass;
    cli_seed seed;
} inner;

typedef struct arguments {
    const char *first, *second;
    cli_words rest;
    bool raw;
    int mode;
    const char *text, *choice;
    cli_tokens tokens;
    inner inner;
} arguments;

static const cli_option outer_table[] = {
    {.names = "-r --raw", .type = CLI_FLAG, .offset = offsetof(arguments, raw)},
    {.names = "--on", .type = CLI_SET, .constant = 1, .offset = offsetof(arguments, mode)},
    {.names = "--off", .type = CLI_SET, .constant = 2, .offset = offsetof(arguments, mode)},
    {.names = "-t --text", .argument = "TEXT", .type = CLI_STRING, .offset = offsetof(arguments, text)},
    {.names = "--first", .argument = "TEXT", .type = CLI_STRING, .offset = offsetof(arguments, first)},
    {.names = "--choice",
     .argument = "WORD",
     .type = CLI_CHOICE,
     .choices = "all some none",
     .offset = offsetof(arguments, choice)},
    {.names = "--tokens", .argument = "IDS", .type = CLI_TOKENS, .offset = offsetof(arguments, tokens)},
    {0},
};

static const cli_option inner_table[] = {
    {.names = "-n --max-count --number",
     .argument = "N",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 100, .has_also = true, .also_value = -1},
     .offset = offsetof(inner, count)},
    {.names = "--mass",
     .argument = "P",
     .type = CLI_NUMBER,
     .range = {.low = 0, .high = 1, .low_excluded = true},
     .offset = offsetof(inner, mass)},
    {.names = "-s --seed", .argument = "S", .type = CLI_SEED, .offset = offsetof(inner, seed)},
    {.names = "-sys", .argument = "TEXT", .type = CLI_SEED, .offset = offsetof(inner, seed)},
    {0},
};

static const cli_command command = {
    .name = "test",
    .operands = (const cli_operand[]){{"FIRST", offsetof(arguments, first), true, ""},
                                      {"SECOND", offsetof(arguments, second), false, ""},
                                      {0}},
    .groups =
        (const cli_option_group[]){
            {.title = "Outer", .options = outer_table, .fixed = true},
            {.title = "Inner", .options = inner_table, .offset = offsetof(arguments, inner)},
            {0}},
    .arguments_size = sizeof(arguments),
};

static const cli_command with_rest = {
    .name = "test",
    .operands = (const cli_operand[]){{"FIRST", offsetof(arguments, first), true, ""}, {0}},
    .rest = &(const cli_operand){"REST", offsetof(arguments, rest), false, ""},
    .groups = (const cli_option_group[]){{.title = "Outer", .options = outer_table}, {0}},
    .arguments_size = sizeof(arguments),
};

static arguments parsed;
static gumbel_error error;
static gb_byte_buffer notes;

static cli_parsed parse(const cli_command *by, const char *const *words) {
    int count = 0;
    while (words[count])
        count++;
    cli_free_arguments(&with_rest, &parsed);
    parsed = (arguments){0};
    gb_buffer_free(&notes);
    return cli_parse(by, count, (char *const *)(uintptr_t)words, &parsed, &notes, &error);
}

#define PARSE(...) parse(&command, (const char *const[]){__VA_ARGS__, NULL})
#define PARSE_REST(...) parse(&with_rest, (const char *const[]){__VA_ARGS__, NULL})

static void assert_wrong(cli_parsed result, const char *message) {
    assert_int_equal(result, CLI_WRONG);
    assert_string_equal(error.message, message);
}

static void values_reach_their_fields(void **state) {
    (void)state;
    assert_int_equal(PARSE("a", "--raw", "--text", "hello", "b", "--choice", "some", "--tokens", "2, 17,99",
                           "-n", "12", "--mass", "0.5", "--seed", "18446744073709551615"),
                     CLI_PARSED);
    assert_string_equal(parsed.first, "a");
    assert_string_equal(parsed.second, "b");
    assert_true(parsed.raw);
    assert_string_equal(parsed.text, "hello");
    assert_string_equal(parsed.choice, "some");
    assert_int_equal(parsed.tokens.count, 3);
    assert_int_equal(parsed.tokens.ids[1], 17);
    assert_true(parsed.inner.count.given);
    assert_int_equal(parsed.inner.count.value, 12);
    assert_true(parsed.inner.mass.value == 0.5);
    assert_true(parsed.inner.seed.given && !parsed.inner.seed.draw);
    assert_true(parsed.inner.seed.value == UINT64_MAX);
}

static void absent_flags_are_not_given(void **state) {
    (void)state;
    assert_int_equal(PARSE("a"), CLI_PARSED);
    assert_false(parsed.raw || parsed.inner.count.given || parsed.inner.mass.given ||
                 parsed.inner.seed.given);
    assert_null(parsed.text);
    assert_null(parsed.tokens.ids);
    assert_int_equal(parsed.mode, 0);
}

static void every_way_of_writing_a_flag(void **state) {
    (void)state;
    assert_int_equal(PARSE("a", "-n7"), CLI_PARSED);
    assert_int_equal(parsed.inner.count.value, 7);
    assert_int_equal(PARSE("a", "--number=8"), CLI_PARSED);
    assert_int_equal(parsed.inner.count.value, 8);
    assert_int_equal(PARSE("a", "--max_count", "9"), CLI_PARSED);
    assert_int_equal(parsed.inner.count.value, 9);
    assert_int_equal(PARSE("a", "-n", "-1"), CLI_PARSED);
    assert_int_equal(parsed.inner.count.value, -1);
    assert_int_equal(PARSE("a", "--text=--raw"), CLI_PARSED);
    assert_string_equal(parsed.text, "--raw");
    assert_false(parsed.raw);
    assert_int_equal(PARSE("a", "--text="), CLI_PARSED);
    assert_string_equal(parsed.text, "");
    assert_int_equal(PARSE("--", "--raw"), CLI_PARSED);
    assert_string_equal(parsed.first, "--raw");
    assert_int_equal(PARSE("a", "-"), CLI_PARSED);
    assert_string_equal(parsed.second, "-");
    assert_int_equal(PARSE("a", "-sys", "4"), CLI_PARSED);
    assert_int_equal(parsed.inner.seed.value, 4);
}

static void the_last_of_repeated_flags_counts(void **state) {
    (void)state;
    assert_int_equal(PARSE("a", "--on", "--off", "--tokens", "1", "--tokens", "2,3"), CLI_PARSED);
    assert_int_equal(parsed.mode, 2);
    assert_int_equal(parsed.tokens.count, 2);
}

static void a_flag_can_stand_for_an_operand(void **state) {
    (void)state;
    assert_int_equal(PARSE("b", "--first", "a"), CLI_PARSED);
    assert_string_equal(parsed.first, "a");
    assert_string_equal(parsed.second, "b");
}

static void assert_joined(const char *expected) {
    gb_byte_buffer joined = {0};
    cli_words_join(&parsed.rest, &joined);
    assert_string_equal(joined.text, expected);
    gb_buffer_free(&joined);
}

/* The words that are left are one list, whatever flags stand among them. */
static void words_are_listed(void **state) {
    (void)state;
    assert_int_equal(PARSE_REST("a"), CLI_PARSED);
    assert_int_equal(parsed.rest.count, 0);
    assert_int_equal(PARSE_REST("a", "why", "--raw", "is  the", "sky", "--", "--blue"), CLI_PARSED);
    assert_joined("why is  the sky --blue");
    assert_int_equal(PARSE_REST("--first", "a", "", "b"), CLI_PARSED);
    assert_string_equal(parsed.first, "a");
    assert_joined(" b");
    assert_int_equal(PARSE_REST("a", ""), CLI_PARSED);
    assert_joined("");
    assert_wrong(PARSE_REST("--raw"), "test needs a FIRST (see gumbel help test)");
}

static void switches_can_be_off(void **state) {
    (void)state;
    assert_int_equal(PARSE("a", "--raw", "--raw=off"), CLI_PARSED);
    assert_false(parsed.raw);
    assert_int_equal(PARSE("a", "--raw=off", "--raw=True"), CLI_PARSED);
    assert_true(parsed.raw);
    assert_true(cli_flag_is_set(&command, &parsed, "--raw"));
    assert_false(cli_flag_is_set(&command, &parsed, "--text") || cli_flag_is_set(&command, &parsed, "-x"));
}

/* In whole characters, and what is wrong stays legible. */
static void long_words_are_cut(void **state) {
    (void)state;
    char word[800] = "--mass=", begin[256];
    for (size_t i = 0; i < 300; i++)
        strcat(word, "\u00e9");
    assert_int_equal(PARSE("a", word), CLI_WRONG);
    snprintf(begin, sizeof begin, "--mass %.100s\u2026: expected a number in (0, 1]", word + 7);
    assert_string_equal(error.message, begin);
    memcpy(word, "--z=\n12", 7);
    assert_int_equal(PARSE("a", word + 7, word + 4, "x"), CLI_WRONG);
    snprintf(begin, sizeof begin, "test: unexpected \"\\n12%.97s", word + 7);
    begin[strlen("test: unexpected \"\\n12") + 96] = '\0';
    strcat(begin, "\u2026\" (see gumbel help test)");
    assert_string_equal(error.message, begin);
    memset(word, 'x', sizeof word - 1);
    memcpy(word, "--", 2);
    assert_int_equal(PARSE("a", word), CLI_WRONG);
    snprintf(begin, sizeof begin, "test has no option %.100s\u2026 (see gumbel help test)", word);
    assert_string_equal(error.message, begin);
    assert_false(cli_set_option(command.groups, &parsed, word + 2, "1", &error));
    snprintf(begin, sizeof begin, "there is no setting %.100s\u2026", word + 2);
    assert_string_equal(error.message, begin);
}

static void help_is_asked_for_anywhere(void **state) {
    (void)state;
    assert_int_equal(PARSE("-h"), CLI_HELP_WANTED);
    assert_int_equal(PARSE("a", "--raw", "--help"), CLI_HELP_WANTED);
}

static void wrong_lines_are_named(void **state) {
    (void)state;
    assert_wrong(PARSE("--raw"), "test needs a FIRST (see gumbel help test)");
    assert_wrong(PARSE("a", "b", "c"), "test: unexpected \"c\" (see gumbel help test)");
    assert_wrong(PARSE("a", "--numbr", "3"), "test has no option --numbr; did you mean --number?");
    assert_wrong(PARSE("a", "--zebra"), "test has no option --zebra (see gumbel help test)");
    assert_wrong(PARSE("a", "-x"), "test has no option -x (see gumbel help test)");
    assert_wrong(PARSE("a", "-rn"), "test has no option -rn (see gumbel help test)");
    assert_wrong(PARSE("a", "-n"), "--max-count needs a value: --max-count N");
    assert_wrong(PARSE("a", "--on=1"), "--on takes no value");
    assert_wrong(PARSE("a", "--raw=2"), "--raw 2: expected one of 1 0 true false on off");
    assert_wrong(PARSE("a", "-n", "0"), "--max-count 0: expected -1 or an integer in [1, 100]");
    assert_wrong(PARSE("a", "-n", "101"), "--max-count 101: expected -1 or an integer in [1, 100]");
    assert_wrong(PARSE("a", "-n", "7x"), "--max-count 7x: expected -1 or an integer in [1, 100]");
    assert_wrong(PARSE("a", "-n", ""), "--max-count \"\": expected -1 or an integer in [1, 100]");
    assert_wrong(PARSE("a", "--mass", "1.5"), "--mass 1.5: expected a number in (0, 1]");
    assert_wrong(PARSE("a", "--mass", "0"), "--mass 0: expected a number in (0, 1]");
    assert_wrong(PARSE("a", "--choice", "al"), "--choice al: expected one of all some none");
    assert_wrong(PARSE("a", "--tokens", "1,,2"), "--tokens 1,,2: expected token ids separated by commas");
    assert_wrong(
        PARSE("a", "-s", "18446744073709551616"),
        "--seed 18446744073709551616: expected an integer in [0, 18446744073709551615], or -1 to draw "
        "one");
}

static void settings_by_name(void **state) {
    (void)state;
    parsed = (arguments){0};
    assert_true(cli_set_option(command.groups, &parsed, "mass", "0.25", &error));
    assert_true(parsed.inner.mass.value == 0.25);
    assert_false(cli_set_option(command.groups, &parsed, "mass", NULL, &error));
    assert_string_equal(error.message, "mass needs a value: mass P");
    assert_false(cli_set_option(command.groups, &parsed, "text", "x", &error));
    assert_string_equal(error.message, "text cannot be changed now, only given at the start");
    assert_false(cli_set_option(command.groups, &parsed, "mas", "1", &error));
    assert_string_equal(error.message, "there is no setting mas; did you mean mass?");
    assert_false(cli_set_option(command.groups, &parsed, "mass", "2", &error));
    assert_string_equal(error.message, "--mass 2: expected a number in (0, 1]");
}

static void suggestions_are_near(void **state) {
    (void)state;
    char found[16];
    assert_string_equal(cli_suggest("exprot", "export run chat", found, sizeof found), "export");
    assert_string_equal(cli_suggest("rum", "export run chat", found, sizeof found), "run");
    assert_null(cli_suggest("zebra", "export run chat", found, sizeof found));
    assert_null(cli_suggest("a-word-that-is-longer-than-any-name-there-is", "export", found, sizeof found));
    static const char flags[] = "-n --max-new-tokens --min-p --temp --temperature -f --file --top-k";
    static const char *const near[][2] = {{"--tmp", "--temp"},
                                          {"-temp", "--temp"},
                                          {"--min_p", "--min-p"},
                                          {"--tempera", "--temperature"},
                                          {"--maxnew-tokens", "--max-new-tokens"},
                                          {"--temprature", "--temperature"},
                                          {"--fiel", "--file"}};
    char flag[32];
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        assert_string_equal(cli_suggest(near[i][0], flags, flag, sizeof flag), near[i][1]);
    static const char *const far[] = {"--jinja", "-hf",    "-ngl", "-fa", "--seed",
                                      "--stop",  "--line", "--to", "-x"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        if (cli_suggest(far[i], flags, flag, sizeof flag))
            fail_msg("%s is told %s", far[i], flag);
}

static int free_parsed(void **state) {
    (void)state;
    cli_free_arguments(&with_rest, &parsed);
    gb_buffer_free(&notes);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_reach_their_fields),
        cmocka_unit_test(absent_flags_are_not_given),
        cmocka_unit_test(every_way_of_writing_a_flag),
        cmocka_unit_test(the_last_of_repeated_flags_counts),
        cmocka_unit_test(a_flag_can_stand_for_an_operand),
        cmocka_unit_test(words_are_listed),
        cmocka_unit_test(switches_can_be_off),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(help_is_asked_for_anywhere),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(settings_by_name),
        cmocka_unit_test(suggestions_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, free_parsed);
}
