/* SPDX-License-Identifier: Apache-2.0
 *
 * How long models may think: the flag that `run`, `chat` and `serve` share.
 */
#ifndef GUMBEL_CLI_MODEL_REASONING_H
#define GUMBEL_CLI_MODEL_REASONING_H

#include "cli/options/options.h"
#include "gumbel.h"

typedef struct cli_reasoning_options {
    cli_integer budget;
} cli_reasoning_options;

extern const cli_option cli_reasoning_table[];

/* Whether the flag sets a limit, and which. */
bool cli_has_reasoning_budget(const cli_reasoning_options *flags, uint32_t *budget);

#endif
