/* SPDX-License-Identifier: Apache-2.0
 *
 * Scripts for the shells' completion, from the same tables as --help.
 */
#include "cli/command.h"

#include <string.h>

static bool takes_value(const cli_option *option) {
    return option->argument != NULL;
}

/* Of the types of values only text can be a path. */
static bool takes_file(const cli_option *option) {
    return option->type == CLI_STRING;
}

/* Text within single quotes. backslashed: characters that the shell's function wants behind a backslash. */
static void print_quoted(FILE *file, const char *text, size_t length, const char *backslashed) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'')
            fputs("'\\''", file);
        else if (strchr(backslashed, text[i]))
            fprintf(file, "\\%c", text[i]);
        else
            fputc(text[i], file);
    }
}

/* The first sentence of an option's help without its full stop. */
static size_t first_sentence(const char *help) {
    const char *end = strstr(help, ". ");
    size_t length = end ? (size_t)(end - help) : strlen(help);
    return length > 0 && help[length - 1] == '.' ? length - 1 : length;
}

static void print_command_names(FILE *file) {
    for (const cli_command *const *command = cli_commands; *command; command++)
        fprintf(file, "%s ", (*command)->name);
}

/* Calls print for each option of the command. */
static void each_option(FILE *file, const cli_command *command,
                        void (*print)(FILE *file, const cli_command *command, const cli_option *option)) {
    for (const cli_option_group *group = command->groups; group->title; group++)
        for (const cli_option *option = group->options; option->names; option++)
            print(file, command, option);
}

/* ---- bash ---------------------------------------------------------------------------------------------- */

static void print_bash_names(FILE *file, const cli_command *command, const cli_option *option) {
    (void)command;
    fprintf(file, "%s ", option->names);
}

/* What may follow the option: a line of the case on the word before. */
static void print_bash_value(FILE *file, const cli_command *command, const cli_option *option) {
    (void)command;
    if (!takes_value(option))
        return;
    const char *names = option->names, *name, *separator = "        ";
    for (size_t length; (length = cli_next_name(&names, &name)) > 0; separator = " | ")
        fprintf(file, "%s%.*s", separator, (int)length, name);
    if (option->choices)
        fprintf(file, ") values='%s' ;;\n", option->choices);
    else
        fprintf(file, ") values=%s ;;\n", takes_file(option) ? "FILES" : "NONE");
}

static void print_bash_command(FILE *file, const cli_command *command) {
    fprintf(file, "    %s)\n        flags='", command->name);
    each_option(file, command, print_bash_names);
    fputs("--help'\n        case $previous in\n", file);
    each_option(file, command, print_bash_value);
    fputs("        esac\n        ;;\n", file);
}

static void print_bash(FILE *file) {
    fputs("# gumbel's completion for bash; made by gumbel --completion bash\n\n"
          "_gumbel() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local flags='' values=''\n"
          "    COMPREPLY=()\n"
          "    if [[ $word == = ]]; then # --name=, which readline has cut in two\n"
          "        word=''\n"
          "    elif [[ $previous == = ]]; then\n"
          "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        values='",
          file);
    print_command_names(file);
    fputs("help --help --version'\n    fi\n    case ${COMP_WORDS[1]} in\n    help) values='", file);
    print_command_names(file);
    fputs("' ;;\n", file);
    for (const cli_command *const *command = cli_commands; *command; command++)
        print_bash_command(file, *command);
    fputs("    esac\n"
          "    if [[ $values == NONE ]]; then\n"
          "        return\n"
          "    elif [[ $values == FILES || (-z $values && $word != -*) ]]; then\n"
          "        compopt -o default 2>/dev/null\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"${values:-$flags}\" -- \"$word\")\n"
          "    fi\n"
          "}\n"
          "complete -F _gumbel gumbel\n",
          file);
}

/* ---- zsh ----------------------------------------------------------------------------------------------- */

/* "-n+" takes its value from the same word or the next one, "--name=" likewise. */
static void print_zsh_option(FILE *file, const cli_command *command, const cli_option *option) {
    (void)command;
    const char *names = option->names, *name;
    for (size_t length; (length = cli_next_name(&names, &name)) > 0;) {
        fprintf(file, "            '*%.*s", (int)length, name);
        if (takes_value(option))
            fputc(length > 2 ? '=' : '+', file);
        fputc('[', file);
        print_quoted(file, option->help, first_sentence(option->help), "[]:\\");
        fputc(']', file);
        if (takes_value(option)) {
            fputc(':', file);
            print_quoted(file, option->argument, strlen(option->argument), ":\\");
            fputc(':', file);
        }
        if (option->choices)
            fprintf(file, "(%s)", option->choices);
        else if (takes_file(option))
            fputs("_files", file);
        fputs("' \\\n", file);
    }
}

static void print_zsh(FILE *file) {
    fputs("#compdef gumbel\n# made by gumbel --completion zsh\n\n_gumbel() {\n    local -a commands=(\n",
          file);
    for (const cli_command *const *command = cli_commands; *command; command++) {
        fprintf(file, "        '%s:", (*command)->name);
        print_quoted(file, (*command)->summary, strlen((*command)->summary), ":\\");
        fputs("'\n", file);
    }
    fputs("        'help:show what a command does'\n    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe -t commands command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n"
          "    help) _describe -t commands command commands ;;\n",
          file);
    for (const cli_command *const *command = cli_commands; *command; command++) {
        fprintf(file, "    %s)\n        _arguments \\\n", (*command)->name);
        each_option(file, *command, print_zsh_option);
        fputs("            '--help[show what it does]' '*:file:_files'\n        ;;\n", file);
    }
    fputs("    esac\n}\n\n_gumbel \"$@\"\n", file);
}

/* ---- fish ---------------------------------------------------------------------------------------------- */

static void print_fish_description(FILE *file, const char *text, size_t length) {
    fputs(" -d '", file);
    for (size_t i = 0; i < length; i++)
        fprintf(file, text[i] == '\'' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
    fputs("'\n", file);
}

static void print_fish_option(FILE *file, const cli_command *command, const cli_option *option) {
    fprintf(file, "complete -c gumbel -n '__fish_seen_subcommand_from %s'", command->name);
    const char *names = option->names, *name;
    for (size_t length; (length = cli_next_name(&names, &name)) > 0;) {
        if (name[1] == '-')
            fprintf(file, " -l %.*s", (int)length - 2, name + 2);
        else
            fprintf(file, " -%c %.*s", length > 2 ? 'o' : 's', (int)length - 1, name + 1);
    }
    if (takes_value(option))
        fputs(takes_file(option) ? " -r -F" : " -x", file);
    if (option->choices)
        fprintf(file, " -a '%s'", option->choices);
    print_fish_description(file, option->help, first_sentence(option->help));
}

static void print_fish(FILE *file) {
    fputs("# gumbel's completion for fish; made by gumbel --completion fish\n\n"
          "complete -c gumbel -n __fish_use_subcommand -f\n",
          file);
    for (const cli_command *const *command = cli_commands; *command; command++) {
        fprintf(file, "complete -c gumbel -n __fish_use_subcommand -a %s", (*command)->name);
        print_fish_description(file, (*command)->summary, strlen((*command)->summary));
    }
    fputs("complete -c gumbel -n __fish_use_subcommand -a help -d 'show what a command does'\n"
          "complete -c gumbel -n '__fish_seen_subcommand_from help' -f -a '",
          file);
    print_command_names(file);
    fputs("'\n", file);
    for (const cli_command *const *command = cli_commands; *command; command++)
        each_option(file, *command, print_fish_option);
}

bool cli_print_completion(const char *shell, FILE *file) {
    static const struct {
        const char *shell;
        void (*print)(FILE *file);
    } scripts[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(shell, scripts[i].shell) == 0) {
            scripts[i].print(file);
            return true;
        }
    return false;
}
