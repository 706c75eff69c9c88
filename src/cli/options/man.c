/* SPDX-License-Identifier: Apache-2.0
 *
 * Manual pages in the man(7) macros, from the same tables as --help.
 */
#include "cli/command.h"
#include "cli/options/environment.h"

#include <ctype.h>
#include <string.h>

/* Text with what roff would read as a request or an escape made harmless; a newline begins a paragraph. */
static void print_text(FILE *file, const char *text, size_t length) {
    bool line_begins = true;
    for (size_t i = 0; i < length; i++) {
        if (line_begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", file);
        line_begins = text[i] == '\n';
        if (text[i] == '\n')
            fputs("\n.PP\n", file);
        else if (text[i] == '\\')
            fputs("\\e", file);
        else if (text[i] == '-')
            fputs("\\-", file);
        else
            fputc(text[i], file);
    }
}

static void print_line(FILE *file, const char *text) {
    print_text(file, text, strlen(text));
    fputc('\n', file);
}

static void print_heading(FILE *file, const char *title) {
    fputs(".SH ", file);
    for (const char *c = title; *c; c++)
        fputc(toupper((unsigned char)*c), file);
    fputc('\n', file);
}

static void print_title(FILE *file, const char *page, const char *summary) {
    fprintf(file, ".TH ");
    for (const char *c = page; *c; c++)
        fputc(toupper((unsigned char)*c), file);
    fprintf(file, " 1 \"\" \"gumbel %s\" \"gumbel\"\n", gumbel_version());
    print_heading(file, "Name");
    print_text(file, page, strlen(page));
    fputs(" \\- ", file);
    print_line(file, summary);
}

static void print_synopsis(FILE *file, const cli_command *command) {
    print_heading(file, "Synopsis");
    for (const char *form = command->synopsis; *form;) {
        size_t length = strcspn(form, "\n");
        fprintf(file, ".B gumbel %s\n", command->name);
        print_text(file, form, length);
        fputc('\n', file);
        form += length;
        if (*form) {
            fputs(".br\n", file);
            form++;
        }
    }
}

/* A tagged paragraph that begins with the option's names in bold and its value in italics. */
static void print_option(FILE *file, const cli_option *option) {
    fputs(".TP\n", file);
    const char *names = option->names, *name;
    bool first = true;
    for (size_t length; (length = cli_next_name(&names, &name)) > 0; first = false) {
        fputs(first ? "\\fB" : ", \\fB", file);
        print_text(file, name, length);
        fputs("\\fR", file);
    }
    if (option->argument) {
        fputs(" \\fI", file);
        print_text(file, option->argument, strlen(option->argument));
        fputs("\\fR", file);
    }
    fputc('\n', file);
    print_line(file, option->help);
}

static void print_operand(FILE *file, const cli_operand *operand) {
    fprintf(file, ".TP\n\\fI%s\\fR\n", operand->name);
    print_line(file, operand->help);
}

static void print_operands(FILE *file, const cli_command *command) {
    if (command->operands->name)
        print_heading(file, "Operands");
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
    print_heading(file, "Environment");
    print_line(file, line);
}

static void print_examples(FILE *file, const cli_command *command) {
    if (command->examples->line)
        print_heading(file, "Examples");
    for (const cli_example *example = command->examples; example->line; example++) {
        fputs(".TP\n\\fB", file);
        print_text(file, example->line, strlen(example->line));
        fputs("\\fR\n", file);
        print_line(file, example->what);
    }
}

static void print_exit_status(FILE *file) {
    print_heading(file, "Exit status");
    static const char *const statuses[][2] = {
        {"0", "All went well."},
        {"1", "A file, the system or the program refused; one line on standard error says why."},
        {"2", "The command line is wrong."},
        {"130", "It was interrupted by Ctrl-C."},
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        fprintf(file, ".TP\n%s\n", statuses[i][0]);
        print_line(file, statuses[i][1]);
    }
}

void cli_print_command_page(const cli_command *command, FILE *file) {
    char page[64];
    snprintf(page, sizeof page, "gumbel-%s", command->name);
    print_title(file, page, command->summary);
    print_synopsis(file, command);
    print_heading(file, "Description");
    print_line(file, command->description);
    print_operands(file, command);
    for (const cli_option_group *group = command->groups; group->title; group++) {
        print_heading(file, group->title);
        for (const cli_option *option = group->options; option->names; option++)
            print_option(file, option);
    }
    print_environment(file, command);
    print_examples(file, command);
    print_exit_status(file);
    print_heading(file, "See also");
    fputs(".BR gumbel (1)\n", file);
}

void cli_print_overview_page(FILE *file) {
    print_title(file, "gumbel", "language-model programs that sample their own next token");
    print_heading(file, "Synopsis");
    fputs(".B gumbel\n\\fICOMMAND\\fR ...\n.br\n.B gumbel help\n[\\fICOMMAND\\fR]\n.br\n"
          ".B gumbel \\-\\-version\n",
          file);
    print_heading(file, "Description");
    print_line(file,
               "gumbel turns a language-model checkpoint into one file that chooses its own next token: "
               "a program, with graph, weights, tokenizer and chat templates. It is made once with gumbel "
               "export; the other commands run it or look into it. Given a checkpoint they make its program "
               "themselves, once, and keep it for the next time.");
    print_heading(file, "Commands");
    for (const cli_command *const *command = cli_commands; *command; command++) {
        fprintf(file, ".TP\n\\fB%s\\fR\n", (*command)->name);
        print_line(file, (*command)->summary);
    }
    print_heading(file, "Environment");
    print_line(file,
               "Each option of a command has a variable, GUMBEL_ and its long name in capitals, with _ for "
               "each dash within: GUMBEL_MAX_NEW_TOKENS=64 is --max-new-tokens 64. The command line counts "
               "before the environment, and GUMBEL_MODEL stands for a PROGRAM that it does not name. "
               "Options without a value take " CLI_SWITCH_WORDS ". A command reads the variables of its "
               "own options alone; an empty one counts as absent.");
    print_heading(file, "Flags of other programs");
    print_line(file, "Flags of llama.cpp and mlx-lm that gumbel has by another name work; those that mean "
                     "nothing here are taken with a note, the others are refused with what to use instead.");
    print_heading(file, "Files");
    fputs(".TP\n\\fI~/.cache/gumbel\\fR\n", file);
    print_line(file, "Programs that commands have made from checkpoints; $XDG_CACHE_HOME/gumbel where "
                     "XDG_CACHE_HOME is set. They may be removed at any time.");
    print_exit_status(file);
    print_heading(file, "See also");
    for (const cli_command *const *command = cli_commands; *command; command++)
        fprintf(file, ".BR gumbel\\-%s (1)%s\n", (*command)->name, command[1] ? "," : "");
}
