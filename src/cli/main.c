/* SPDX-License-Identifier: Apache-2.0
 *
 * The program gumbel: finds the command, reads its command line and runs it.
 */
#include "cli/base/fatal_signals.h"
#include "cli/base/report.h"
#include "cli/base/shorten.h"
#include "cli/command.h"
#include "cli/model/launched.h"
#include "cli/options/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse_command(const char *name) {
    char names[256] = "", found[32], given[CLI_SHORTENED];
    for (const cli_command *const *command = cli_commands; *command; command++) {
        strcat(names, (*command)->name);
        strcat(names, " ");
    }
    cli_shorten(name, given);
    if (name[0] == '-' || access(name, F_OK) == 0)
        return cli_fail_usage("a command comes first, such as gumbel run %s (see gumbel help)", given);
    if (cli_suggest(name, names, found, sizeof found))
        return cli_fail_usage("there is no command \"%s\"; did you mean %s?", given, found);
    return cli_fail_usage("there is no command \"%s\" (see gumbel help)", given);
}

/* The help of a command, or of all; as_pages: what the build makes the manual pages with. */
static int print_help(const char *name, bool as_pages) {
    const cli_command *command = name ? cli_find_command(name) : NULL;
    if (name && !command)
        return refuse_command(name);
    if (command)
        (as_pages ? cli_print_command_page : cli_print_help)(command, stdout);
    else
        (as_pages ? cli_print_overview_page : cli_print_overview)(stdout);
    return CLI_OK;
}

/* Prints each line as a note. */
static void print_notes(const gb_byte_buffer *notes) {
    for (const char *line = notes->text; line && *line; line += strcspn(line, "\n") + 1)
        cli_note("%.*s", (int)strcspn(line, "\n"), line);
}

/* What the build makes the shells' completions with. */
static int print_completion(const char *shell) {
    if (!shell || !cli_print_completion(shell, stdout))
        return cli_fail_usage("--completion: expected bash, zsh or fish");
    return CLI_OK;
}

static int run_command(const cli_command *command, int count, char *const *words) {
    void *arguments = cli_allocate(1, command->arguments_size);
    gb_byte_buffer notes = {0};
    gumbel_error error;
    int status = CLI_OK;
    switch (cli_parse(command, count, words, arguments, &notes, &error)) {
    case CLI_PARSED:
        cli_set_quiet(cli_flag_is_set(command, arguments, "--quiet"));
        cli_note_variables(&notes);
        print_notes(&notes);
        status = command->run(arguments);
        break;
    case CLI_HELP_WANTED:
        cli_print_help(command, stdout);
        break;
    case CLI_WRONG:
        status = cli_fail_usage("%s", error.message);
        break;
    }
    gb_buffer_free(&notes);
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
        return print_help(topic, false);
    if (strcmp(name, "--man") == 0)
        return print_help(topic, true);
    if (strcmp(name, "--completion") == 0)
        return print_completion(topic);
    const cli_command *command = cli_find_command(name);
    return command ? run_command(command, count - 1, words + 1) : refuse_command(name);
}

int main(int count, char **words) {
    cli_handle_fatal_signals();
    int status = dispatch(count - 1, words + 1);
    cli_leave_processes();
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_OK)
        status = cli_fail("standard output cannot be written");
    return status;
}
