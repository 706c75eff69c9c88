/* SPDX-License-Identifier: Apache-2.0
 *
 * Options from the environment. Each option has one variable, its long name in capitals after GUMBEL_:
 * GUMBEL_MAX_NEW_TOKENS=64. It fills the option's field where the command line does not; a command reads
 * those of its own options; an empty one counts as absent. Flags without a value take 1 0 true false on off.
 */
#ifndef GUMBEL_CLI_OPTIONS_ENVIRONMENT_H
#define GUMBEL_CLI_OPTIONS_ENVIRONMENT_H

#include "cli/options/option_table.h"

enum { CLI_VARIABLE_NAME = CLI_OPTION_NAME + 8 };

/* Returns name. */
const char *cli_variable_name(const cli_option *option, char name[CLI_VARIABLE_NAME]);

/* The sentence of a command's help that says all this; "" where it has no options. */
void cli_describe_environment(const cli_command *command, char *text, size_t capacity);

/* Adds a line to notes for each variable of the environment that begins with GUMBEL_, is none of any
 * command's, and looks like a mistyped one. */
void cli_note_variables(gb_byte_buffer *notes);

#endif
