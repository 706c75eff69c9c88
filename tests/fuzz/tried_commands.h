/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that harnesses run with faults: what they write is the same every time.
 */
#ifndef GUMBEL_TESTS_TRIED_COMMANDS_H
#define GUMBEL_TESTS_TRIED_COMMANDS_H

#include "support/run_command.h"

#include <stddef.h>

enum { TRIED_COMMANDS = 12 };

/* Makes what they read, and gives them an environment of their own. Ends the process on an error. */
void prepare_commands(void);

/* "chat" */
const char *name_of_command(size_t which);

/* Runs one with the program of that path; its outputs are removed first. Free with free_result. */
command_result run_tried(size_t which, const char *program);

#endif
