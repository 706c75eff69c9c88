/* SPDX-License-Identifier: Apache-2.0
 *
 * Help and manual pages: complete, and made of the same tables.
 */
#include "cli/command.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t length;

/* What a function prints, in text. */
static void capture(const cli_command *command, void (*print)(const cli_command *command, FILE *file)) {
    free(text);
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    print(command, file);
    fclose(file);
}

static void assert_contains(const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void help_has_every_option(void **state) {
    (void)state;
    for (const cli_command *const *command = cli_commands; *command; command++) {
        capture(*command, cli_print_help);
        assert_contains((*command)->name);
        assert_contains("\nEnvironment: GUMBEL_");
        if ((*command)->rest)
            assert_contains((*command)->rest->name);
        for (const cli_option_group *group = (*command)->groups; group->title; group++)
            for (const cli_option *option = group->options; option->names; option++) {
                const char *names = option->names, *name;
                char one[64];
                for (size_t n; (n = cli_next_name(&names, &name)) > 0;) {
                    snprintf(one, sizeof one, "%.*s", (int)n, name);
                    assert_contains(one);
                }
            }
    }
}

static void help_fits_a_terminal(void **state) {
    (void)state;
    for (const cli_command *const *command = cli_commands; *command; command++) {
        capture(*command, cli_print_help);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            if (strcspn(line, "\n") > 80)
                fail_msg("a line of %zu columns: %.200s", strcspn(line, "\n"), line);
    }
}

/* Every option can be given a value of its type, says so, and has a name of its own. */
static void tables_are_consistent(void **state) {
    (void)state;
    for (const cli_command *const *command = cli_commands; *command; command++) {
        char seen[4096] = "";
        assert_true(strlen((*command)->summary) < 60);
        for (const cli_option_group *group = (*command)->groups; group->title; group++)
            for (const cli_option *option = group->options; option->names; option++) {
                bool takes_value = option->type != CLI_FLAG && option->type != CLI_SET;
                assert_true(takes_value == (option->argument != NULL));
                assert_true(option->type != CLI_CHOICE || option->choices);
                assert_true(option->type == CLI_CHOICE || option->type == CLI_INTEGERS ||
                            option->type == CLI_STRING || !option->choices);
                assert_true(group->offset + option->offset < (*command)->arguments_size);
                assert_true(option->help && option->help[strlen(option->help) - 1] == '.');
                const char *names = option->names, *name;
                for (size_t n; (n = cli_next_name(&names, &name)) > 0;) {
                    char one[64];
                    snprintf(one, sizeof one, "%.*s", (int)n, name);
                    if (cli_is_choice(one, seen))
                        fail_msg("gumbel %s has %s twice", (*command)->name, one);
                    strcat(strcat(seen, one), " ");
                }
            }
    }
}

/* `run` without a prompt is a chat with the same flags. */
static void run_has_the_options_of_chat(void **state) {
    (void)state;
    char run[4096] = "";
    for (const cli_option_group *group = cli_command_run.groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            strcat(strcat(run, option->names), " ");
    for (const cli_option_group *group = cli_command_chat.groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            if (!strstr(run, option->names))
                fail_msg("gumbel run has no %s", option->names);
}

/* Requests and escapes of the page; a line of text never begins with a dot, a dash is never typeset. */
static void pages_are_roff(void **state) {
    (void)state;
    static const char *const requests[] = {".TH ", ".SH ", ".TP", ".PP", ".B ", ".BR ", ".br"};
    for (const cli_command *const *command = cli_commands; *command; command++) {
        capture(*command, cli_print_command_page);
        assert_memory_equal(text, ".TH GUMBEL-", 11);
        assert_contains(".SH NAME\n");
        assert_contains(".SH SYNOPSIS\n");
        assert_contains(".SH EXIT STATUS\n");
        assert_contains(".SH ENVIRONMENT\nGUMBEL_ and an option's long name");
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
            assert_int_not_equal(*line, '\'');
            bool known = *line != '.';
            for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
                known = known || strncmp(line, requests[i], strlen(requests[i])) == 0;
            if (!known)
                fail_msg("a line that roff would not know: %.60s", line);
        }
    }
}

static void the_overview_has_every_command(void **state) {
    (void)state;
    free(text);
    FILE *file = open_memstream(&text, &length);
    cli_print_overview(file);
    fclose(file);
    for (const cli_command *const *command = cli_commands; *command; command++) {
        assert_contains((*command)->name);
        assert_contains((*command)->summary);
        assert_ptr_equal(cli_find_command((*command)->name), *command);
    }
    assert_null(cli_find_command("frob"));
}

static int free_text(void **state) {
    (void)state;
    free(text);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_has_every_option),          cmocka_unit_test(help_fits_a_terminal),
        cmocka_unit_test(tables_are_consistent),          cmocka_unit_test(pages_are_roff),
        cmocka_unit_test(the_overview_has_every_command), cmocka_unit_test(run_has_the_options_of_chat),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
