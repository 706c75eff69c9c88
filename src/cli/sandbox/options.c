/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/sandbox.h"

const cli_option cli_sandbox_table[] = {
    {.names = "--no-sandbox",
     .help = "Keep all rights of the process. By default it gives up starting programs, connecting to others "
             "and writing files once the model is loaded, where the kernel has seccomp.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_sandbox_options, is_off)},
    {0},
};
