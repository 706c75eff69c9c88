/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of commands, and the texts made from their tables.
 */
#ifndef GUMBEL_CLI_COMMAND_H
#define GUMBEL_CLI_COMMAND_H

#include "cli/options/options.h"

#include <stdio.h>

extern const cli_command cli_command_export, cli_command_pack, cli_command_run, cli_command_chat,
    cli_command_serve, cli_command_inspect, cli_command_logits, cli_command_tokenize, cli_command_perplexity,
    cli_command_bench, cli_command_cache, cli_command_pull;

/* All of them in the order of help; ends in NULL. */
extern const cli_command *const cli_commands[];

/* The command of that name, or NULL. */
const cli_command *cli_find_command(const char *name);

/* `gumbel --help` and `gumbel help COMMAND`. */
void cli_print_overview(FILE *file);
void cli_print_help(const cli_command *command, FILE *file);

/* Manual pages in man(7) macros: gumbel.1, and one page for each command. */
void cli_print_overview_page(FILE *file);
void cli_print_command_page(const cli_command *command, FILE *file);

/* The completion script of bash, zsh or fish. False, with nothing printed, for another shell. */
bool cli_print_completion(const char *shell, FILE *file);

#endif
