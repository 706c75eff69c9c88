/* SPDX-License-Identifier: Apache-2.0
 *
 * The program gumbel: finds the command, reads its command line and runs it.
 */
#include "cli/command.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

static int refuse_command(const char *name) {
    char names[256] = "", found[32];
    for (const cli_command *const *command = cli_commands; *command; command++) {
        strcat(names, (*command)->name);
        strcat(names, " ");
    }
    if (cli_suggest(name, names, found, sizeof found))
        return cli_fail_usage("there is no command \"%.40s\"; did you mean %s?", name, found);
    return cli_fail_usage("there is no command \"%.40s\" (see gumbel help)", name);
}

static int print_help(const char *name) {
    if (!name) {
        cli_print_overview(stdout);
        return CLI_OK;
    }
    const cli_command *command = cli_find_command(name);
    if (!command)
        return refuse_command(name);
    cli_print_help(command, stdout);
    return CLI_OK;
}

/* What the build makes the manual pages with. */
static int print_manual_page(const char *name) {
    if (!name) {
        cli_print_overview_page(stdout);
        return CLI_OK;
    }
    const cli_command *command = cli_find_command(name);
    if (!command)
        return refuse_command(name);
    cli_print_command_page(command, stdout);
    return CLI_OK;
}

/* What the build makes the shells' completions with. */
static int print_completion(const char *shell) {
    if (!shell || !cli_print_completion(shell, stdout))
        return cli_fail_usage("--completion: expected bash, zsh or fish");
    return CLI_OK;
}

static int run_command(const cli_command *command, int count, char *const *words) {
    void *arguments = cli_allocate(1, command->arguments_size);
    gumbel_error error;
    int status = CLI_OK;
    switch (cli_parse(command, count, words, arguments, &error)) {
    case CLI_PARSED:
        status = command->run(arguments);
        break;
    case CLI_HELP_WANTED:
        cli_print_help(command, stdout);
        break;
    case CLI_WRONG:
        status = cli_fail_usage("%s", error.message);
        break;
    }
    cli_free_arguments(command, arguments);
    free(arguments);
    return status;
}

static int dispatch(int count, char *const *words) {
    if (count == 0) {
        cli_print_overview(stderr);
        return CLI_USAGE;
    }
    const char *name = words[0], *topic = count > 1 ? words[1] : NULL;
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("gumbel %s\n", gumbel_version());
        return CLI_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return print_help(topic);
    if (strcmp(name, "--man") == 0)
        return print_manual_page(topic);
    if (strcmp(name, "--completion") == 0)
        return print_completion(topic);
    const cli_command *command = cli_find_command(name);
    return command ? run_command(command, count - 1, words + 1) : refuse_command(name);
}

int main(int count, char **words) {
    int status = dispatch(count - 1, words + 1);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_OK)
        status = cli_fail("standard output cannot be written");
    return status;
}
