/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/reasoning.h"

const cli_option cli_reasoning_table[] = {
    {.names = "--reasoning-budget",
     .argument = "N",
     .help = "Tokens that the model may think for; after them its thought is closed, and it answers. 0 "
             "closes it at once; -1, the default, sets no limit.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX, .has_also = true, .also_value = -1},
     .offset = offsetof(cli_reasoning_options, budget)},
    {0},
};

bool cli_has_reasoning_budget(const cli_reasoning_options *flags, uint32_t *budget) {
    const bool has_limit = flags->budget.given && flags->budget.value >= 0;
    *budget = has_limit ? (uint32_t)flags->budget.value : 0;
    return has_limit;
}
