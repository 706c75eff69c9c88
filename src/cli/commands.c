/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

const cli_command *const cli_commands[] = {
    &cli_command_export,
    &cli_command_pack,
    &cli_command_run,
    &cli_command_chat,
    &cli_command_serve,
    &cli_command_inspect,
    &cli_command_logits,
    &cli_command_tokenize,
    &cli_command_perplexity,
    &cli_command_bench,
    &cli_command_cache,
    &cli_command_pull,
    NULL,
};

const cli_command *cli_find_command(const char *name) {
    for (const cli_command *const *command = cli_commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}
