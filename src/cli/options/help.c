/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/options/environment.h"

#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 30 };

/* Prints words from column on, breaking lines before WIDTH; lines after the first begin at indent. A newline
 * in text ends a paragraph. */
static void print_wrapped(FILE *file, const char *text, int column, int indent) {
    bool line_is_empty = true;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (!line_is_empty && column + 1 + length > WIDTH) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
            line_is_empty = true;
        }
        column += fprintf(file, "%s%.*s", line_is_empty ? "" : " ", length, text);
        line_is_empty = false;
        text += length;
        if (*text == '\n') {
            fprintf(file, "\n\n%*s", indent, "");
            column = indent;
            line_is_empty = true;
        }
        if (*text)
            text++;
    }
    fputc('\n', file);
}

/* "-n, --max-new-tokens N" gives the first name of each kind; the other names follow the help. */
static int print_main_names(FILE *file, const cli_option *option) {
    const char *names = option->names, *name;
    int column = fprintf(file, "  ");
    bool has_short = names[1] != '-';
    size_t length = cli_next_name(&names, &name);
    column += fprintf(file, has_short ? "%.*s" : "    %.*s", (int)length, name);
    if (has_short && (length = cli_next_name(&names, &name)) > 0)
        column += fprintf(file, ", %.*s", (int)length, name);
    if (option->argument)
        column += fprintf(file, " %s", option->argument);
    return column;
}

/* What is behind the names that print_main_names gives. */
static const char *other_names(const cli_option *option) {
    const char *names = option->names, *name;
    bool has_short = names[1] != '-';
    cli_next_name(&names, &name);
    if (has_short)
        cli_next_name(&names, &name);
    return names + strspn(names, " ");
}

static void print_option(FILE *file, const cli_option *option) {
    int column = print_main_names(file, option);
    if (column + 2 > HELP_COLUMN) {
        fputc('\n', file);
        column = 0;
    }
    fprintf(file, "%*s", HELP_COLUMN - column, "");
    char text[1024];
    const char *also = other_names(option);
    snprintf(text, sizeof text, *also ? "%s (also %s)" : "%s", option->help, also);
    print_wrapped(file, text, HELP_COLUMN, HELP_COLUMN);
}

static void print_usage(FILE *file, const cli_command *command) {
    const char *form = command->synopsis;
    const char *heading = "usage:";
    while (*form) {
        int length = (int)strcspn(form, "\n");
        int indent = fprintf(file, "%s gumbel %s ", heading, command->name);
        char line[512];
        snprintf(line, sizeof line, "%.*s", length, form);
        print_wrapped(file, line, indent, indent);
        heading = "      ";
        form += length;
        form += *form == '\n';
    }
}

static void print_groups(FILE *file, const cli_command *command) {
    for (const cli_option_group *group = command->groups; group->title; group++) {
        fprintf(file, "\n%s:\n", group->title);
        for (const cli_option *option = group->options; option->names; option++)
            print_option(file, option);
    }
}

static void print_operand(FILE *file, const cli_operand *operand) {
    int column = fprintf(file, "  %s", operand->name);
    fprintf(file, "%*s", HELP_COLUMN - column, "");
    print_wrapped(file, operand->help, HELP_COLUMN, HELP_COLUMN);
}

static void print_operands(FILE *file, const cli_command *command) {
    if (command->operands->name)
        fputc('\n', file);
    for (const cli_operand *operand = command->operands; operand->name; operand++)
        print_operand(file, operand);
    if (command->rest)
        print_operand(file, command->rest);
}

static void print_environment(FILE *file, const cli_command *command) {
    char line[256];
    cli_describe_environment(command, line, sizeof line);
    if (!line[0])
        return;
    int column = fprintf(file, "\nEnvironment: ") - 1;
    print_wrapped(file, line, column, 0);
}

void cli_print_help(const cli_command *command, FILE *file) {
    print_usage(file, command);
    fputc('\n', file);
    print_wrapped(file, command->description, 0, 0);
    print_operands(file, command);
    print_groups(file, command);
    print_environment(file, command);
    if (command->examples->line)
        fprintf(file, "\nExamples:\n");
    for (const cli_example *example = command->examples; example->line; example++)
        fprintf(file, "  %s\n      %s\n", example->line, example->what);
}

void cli_print_overview(FILE *file) {
    fprintf(file, "usage: gumbel COMMAND ...\n\n"
                  "Exports language models to programs that sample their own next token, and runs them.\n\n");
    for (const cli_command *const *command = cli_commands; *command; command++)
        fprintf(file, "  %-10s %s\n", (*command)->name, (*command)->summary);
    fprintf(file, "\n"
                  "  gumbel help COMMAND    what a command does and its options\n"
                  "  gumbel --version       the version\n");
}
