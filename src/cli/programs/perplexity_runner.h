/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program on several sequences at once, one token of each in a step, for the rows of logits that
 * follow.
 */
#ifndef GUMBEL_CLI_PROGRAMS_PERPLEXITY_RUNNER_H
#define GUMBEL_CLI_PROGRAMS_PERPLEXITY_RUNNER_H

#include "cli/model/model.h"

/* All zero for a model that there is not, of which nothing is run then. */
typedef struct cli_rows_runner {
    gumbel_engine *engine;
    gumbel_session **sessions; /* [batch], the first one the model's own */
    gumbel_request *requests;  /* [batch] */
    gumbel_result *results;    /* [batch]: logits are valid until the engine's next step */
} cli_rows_runner;

/* tokens[i] is where each step finds that of sequence i. The model's engine ends the sessions. Free with
 * cli_free_runner, also after a failure. */
gumbel_status cli_make_runner(const cli_model *model, uint32_t batch, const int32_t *tokens,
                              cli_rows_runner *runner, gumbel_error *error);

/* Empties the sessions of all batch sequences. */
void cli_reset_sessions(const cli_rows_runner *runner, uint32_t batch);

/* Runs one token of each of the first count sequences. */
gumbel_status cli_run_rows(const cli_rows_runner *runner, uint32_t count, gumbel_error *error);

void cli_free_runner(cli_rows_runner *runner);

#endif
