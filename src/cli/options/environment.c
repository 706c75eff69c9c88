/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/environment.h"

#include "cli/command.h"

#include <ctype.h>
#include <string.h>

#define PREFIX "GUMBEL_"

extern char **environ;

/* The variable of one of an option's names. */
static void make_variable(const char *option_name, size_t length, char name[CLI_VARIABLE_NAME]) {
    size_t dashes = strspn(option_name, "-"), n = strlen(PREFIX);
    memcpy(name, PREFIX, n);
    for (size_t i = dashes; i < length && n + 1 < CLI_VARIABLE_NAME; i++)
        name[n++] = option_name[i] == '-' ? '_' : (char)toupper((unsigned char)option_name[i]);
    name[n] = '\0';
}

const char *cli_variable_name(const cli_option *option, char name[CLI_VARIABLE_NAME]) {
    char option_name[CLI_OPTION_NAME];
    cli_option_name(option, option_name);
    make_variable(option_name, strlen(option_name), name);
    return name;
}

/* An option for an example, with a value if there is one; NULL where the command has no options. */
static const cli_option *example_of(const cli_command *command) {
    const cli_option *example = command->groups->title ? command->groups->options : NULL;
    for (const cli_option_group *group = command->groups; group->title; group++)
        if (cli_takes_value(group->options))
            example = group->options;
    return example;
}

void cli_describe_environment(const cli_command *command, char *text, size_t capacity) {
    const cli_option *example = example_of(command);
    char variable[CLI_VARIABLE_NAME];
    text[0] = '\0';
    if (example)
        snprintf(text, capacity,
                 "GUMBEL_ and an option's long name in capitals sets the option where the command line does "
                 "not, such as %s=%s.",
                 cli_variable_name(example, variable), example->argument ? example->argument : "1");
}

/* Adds what follows GUMBEL_ in each option's variable, and a blank, to variables. The variable whose option
 * has the given one as another of its names is copied into alias. */
static void list_variables(const char *given, gb_byte_buffer *variables, char alias[CLI_VARIABLE_NAME]) {
    for (const cli_command *const *command = cli_commands; *command; command++)
        for (const cli_option_group *group = (*command)->groups; group->title; group++)
            for (const cli_option *option = group->options; option->names; option++) {
                char variable[CLI_VARIABLE_NAME], other[CLI_VARIABLE_NAME];
                cli_variable_name(option, variable);
                cli_append(variables, variable + strlen(PREFIX), strlen(variable) - strlen(PREFIX));
                cli_append_string(variables, " ");
                const char *names = option->names, *name;
                for (size_t n; (n = cli_next_name(&names, &name)) > 0;) {
                    make_variable(name, n, other);
                    if (strcmp(other, given) == 0)
                        strcpy(alias, variable);
                }
            }
}

static void note_variable(const char *entry, gb_byte_buffer *notes) {
    char given[CLI_VARIABLE_NAME], alias[CLI_VARIABLE_NAME] = "", near[CLI_VARIABLE_NAME];
    char line[3 * CLI_VARIABLE_NAME];
    size_t length = strcspn(entry, "=");
    if (length >= sizeof given)
        return;
    snprintf(given, sizeof given, "%.*s", (int)length, entry);
    gb_byte_buffer variables = {0};
    list_variables(given, &variables, alias);
    const char *end = given + strlen(PREFIX), *meant = alias[0] ? alias + strlen(PREFIX) : NULL;
    if (!meant)
        meant = cli_suggest(end, variables.text, near, sizeof near);
    if (meant && !cli_is_choice(end, variables.text)) {
        int written =
            snprintf(line, sizeof line, "%s is not read; did you mean " PREFIX "%s?\n", given, meant);
        cli_append(notes, line, (size_t)written);
    }
    gb_buffer_free(&variables);
}

void cli_note_variables(gb_byte_buffer *notes) {
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) == 0)
            note_variable(*entry, notes);
}
