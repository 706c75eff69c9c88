/* SPDX-License-Identifier: Apache-2.0
 *
 * GUMBEL_* variables: every option of every command has one.
 */
#include "cli/command.h"
#include "cli/options/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An option and the command line that it is tried in. */
typedef struct trial {
    const cli_command *command;
    const cli_option_group *group;
    const cli_option *option;
    char variable[CLI_VARIABLE_NAME];
    char *arguments;
    gumbel_error error;
    gb_byte_buffer notes;
} trial;

static void *field(const trial *t) {
    return t->arguments + t->group->offset + t->option->offset;
}

/* Parses the words behind one for each required operand, but for the one that the option itself fills. */
static cli_parsed parse(trial *t, const char *first, const char *second) {
    const char *words[8];
    int count = 0;
    cli_free_arguments(t->command, t->arguments);
    gb_buffer_free(&t->notes);
    memset(t->arguments, 0, t->command->arguments_size);
    for (const cli_operand *operand = t->command->operands; operand->name; operand++)
        if (operand->required && t->arguments + operand->offset != (char *)field(t))
            words[count++] = "word";
    if (first)
        words[count++] = first;
    if (second)
        words[count++] = second;
    return cli_parse(t->command, count, (char *const *)(uintptr_t)words, t->arguments, &t->notes, &t->error);
}

static void for_each_option(void (*try_one)(trial *t)) {
    for (const cli_command *const *command = cli_commands; *command; command++)
        for (const cli_option_group *group = (*command)->groups; group->title; group++)
            for (const cli_option *option = group->options; option->names; option++) {
                trial t = {.command = *command, .group = group, .option = option};
                t.arguments = cli_allocate(1, (*command)->arguments_size);
                cli_variable_name(option, t.variable);
                try_one(&t);
                unsetenv(t.variable);
                cli_free_arguments(*command, t.arguments);
                gb_buffer_free(&t.notes);
                free(t.arguments);
            }
}

/* A value that the option takes; wrong: one that it refuses, NULL when it takes any. */
static const char *value_of(const cli_option *option, char text[64], bool wrong) {
    switch (option->type) {
    case CLI_FLAG:
    case CLI_SET:
        return wrong ? "maybe" : "on";
    case CLI_CHOICE:
        snprintf(text, 64, "%.*s", (int)strcspn(option->choices, " "), option->choices);
        return wrong ? "no-such-choice" : text;
    case CLI_INTEGER:
    case CLI_INTEGERS:
    case CLI_NUMBER:
        snprintf(text, 64, "%.10g", option->range.high);
        return wrong ? "much" : text;
    case CLI_SEED:
        return wrong ? "-2" : "7";
    case CLI_TOKENS:
        return wrong ? "a,b" : "2,17";
    case CLI_BIASES:
        return wrong ? "17" : "17=-2.5";
    default:
        return wrong ? NULL : "some text";
    }
}

static bool is_given(const trial *t) {
    static const char zeros[64];
    switch (t->option->type) {
    case CLI_FLAG:
        return *(const bool *)field(t);
    case CLI_SET:
        return *(const int *)field(t) == t->option->constant;
    case CLI_INTEGER:
        return ((const cli_integer *)field(t))->given && ((const cli_integer *)field(t))->from_environment;
    case CLI_NUMBER:
        return ((const cli_number *)field(t))->given && ((const cli_number *)field(t))->from_environment;
    case CLI_SEED:
        return ((const cli_seed *)field(t))->given && ((const cli_seed *)field(t))->from_environment;
    default:
        return memcmp(field(t), zeros, sizeof(void *)) != 0;
    }
}

static void try_right(trial *t) {
    char text[64];
    setenv(t->variable, value_of(t->option, text, false), 1);
    if (parse(t, NULL, NULL) != CLI_PARSED)
        fail_msg("gumbel %s with %s: %s", t->command->name, t->variable, t->error.message);
    if (!is_given(t))
        fail_msg("gumbel %s does not read %s", t->command->name, t->variable);
}

static void every_option_is_read(void **state) {
    (void)state;
    for_each_option(try_right);
}

static void try_wrong(trial *t) {
    char text[64], beginning[128];
    const char *wrong = value_of(t->option, text, true);
    if (!wrong)
        return;
    setenv(t->variable, wrong, 1);
    snprintf(beginning, sizeof beginning, "%s=%s: expected ", t->variable, wrong);
    assert_int_equal(parse(t, NULL, NULL), CLI_WRONG);
    if (strncmp(t->error.message, beginning, strlen(beginning)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", t->error.message, beginning);
}

static void wrong_values_name_their_variable(void **state) {
    (void)state;
    for_each_option(try_wrong);
}

/* What a flag fills is not read: not even a wrong value of the environment counts. */
static void try_flag(trial *t) {
    char text[64], name[CLI_OPTION_NAME], unread[64];
    const char *wrong = value_of(t->option, unread, true);
    bool takes_value = cli_takes_value(t->option);
    setenv(t->variable, wrong ? wrong : "from the environment", 1);
    const char *value = takes_value ? value_of(t->option, text, false) : NULL;
    if (parse(t, cli_option_name(t->option, name), value) != CLI_PARSED)
        fail_msg("gumbel %s %s: %s", t->command->name, name, t->error.message);
    if (t->option->type == CLI_STRING)
        assert_string_equal(*(const char **)field(t), "some text");
}

static void flags_win(void **state) {
    (void)state;
    for_each_option(try_flag);
}

/* An operand's own variable is missing then; nothing else is. */
static void try_empty(trial *t) {
    setenv(t->variable, "", 1);
    cli_parsed result = parse(t, NULL, NULL);
    assert_false(is_given(t) && (t->option->type != CLI_SET || t->option->constant != 0));
    assert_true(result == CLI_PARSED || strstr(t->error.message, " needs a "));
}

static void empty_ones_are_absent(void **state) {
    (void)state;
    for_each_option(try_empty);
}

static void try_switch(trial *t) {
    static const char *const on[] = {"1", "true", "on", "True"}, *const off[] = {"0", "false", "off", "OFF"};
    if (t->option->type != CLI_FLAG)
        return;
    char name[CLI_OPTION_NAME + 4];
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        setenv(t->variable, on[i], 1);
        assert_true(parse(t, NULL, NULL) == CLI_PARSED && *(bool *)field(t));
        cli_option_name(t->option, name);
        strcat(name, "=0");
        assert_true(parse(t, name, NULL) == CLI_PARSED && !*(bool *)field(t));
        setenv(t->variable, off[i], 1);
        assert_true(parse(t, NULL, NULL) == CLI_PARSED && !*(bool *)field(t));
    }
}

static void flags_are_switched(void **state) {
    (void)state;
    for_each_option(try_switch);
}

static void assert_notes(const char *expected) {
    gb_byte_buffer notes = {0};
    cli_note_variables(&notes);
    assert_string_equal(notes.text ? notes.text : "", expected);
    gb_buffer_free(&notes);
}

static void mistyped_variables_are_noted(void **state) {
    (void)state;
    setenv("GUMBEL_TEMPERATURE", "1", 1);
    setenv("GUMBEL_CACHE_FOLDER_OF_MY_SCRIPT", "1", 1);
    setenv("GUMBEL", "1", 1);
    assert_notes("");
    setenv("GUMBEL_TEMPRATURE", "1", 1);
    assert_notes("GUMBEL_TEMPRATURE is not read; did you mean GUMBEL_TEMPERATURE?\n");
    unsetenv("GUMBEL_TEMPRATURE");
    setenv("GUMBEL_CTX_SIZE", "1", 1);
    assert_notes("GUMBEL_CTX_SIZE is not read; did you mean GUMBEL_MAX_CONTEXT?\n");
    unsetenv("GUMBEL_CTX_SIZE");
    unsetenv("GUMBEL_TEMPERATURE");
    unsetenv("GUMBEL_CACHE_FOLDER_OF_MY_SCRIPT");
    unsetenv("GUMBEL");
}

static void help_names_a_variable(void **state) {
    (void)state;
    char text[256];
    cli_describe_environment(&cli_command_run, text, sizeof text);
    assert_non_null(strstr(text, "such as GUMBEL_THREADS=N."));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(wrong_values_name_their_variable),
        cmocka_unit_test(flags_win),
        cmocka_unit_test(empty_ones_are_absent),
        cmocka_unit_test(flags_are_switched),
        cmocka_unit_test(mistyped_variables_are_noted),
        cmocka_unit_test(help_names_a_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
