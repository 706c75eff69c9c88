/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_runner.h"

#include "base/status.h"
#include "cli/base/storage.h"

#include <stdlib.h>

static const gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_k = 0, .top_p = 1};

static gumbel_status make_sessions(const cli_model *model, uint32_t batch, gumbel_session **sessions,
                                   gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    sessions[0] = model->session;
    for (uint32_t i = 1; i < batch && status == GUMBEL_OK; i++)
        status = gumbel_session_create(model->engine, &sessions[i], error);
    return status;
}

static void fill_requests(const cli_rows_runner *runner, uint32_t batch, const int32_t *tokens) {
    for (uint32_t i = 0; i < batch; i++) {
        runner->results[i].size = sizeof *runner->results;
        runner->requests[i] = (gumbel_request){.size = sizeof *runner->requests,
                                               .session = runner->sessions[i],
                                               .tokens = &tokens[i],
                                               .token_count = 1,
                                               .result = &runner->results[i],
                                               .sampling = &greedy};
    }
}

gumbel_status cli_make_runner(const cli_model *model, uint32_t batch, const int32_t *tokens,
                              cli_rows_runner *runner, gumbel_error *error) {
    *runner = (cli_rows_runner){.engine = model->engine};
    if (!model->engine)
        return GUMBEL_OK;
    runner->sessions = cli_allocate(batch, sizeof *runner->sessions);
    runner->requests = cli_allocate(batch, sizeof *runner->requests);
    runner->results = cli_allocate(batch, sizeof *runner->results);
    const gumbel_status status = make_sessions(model, batch, runner->sessions, error);
    if (status == GUMBEL_OK)
        fill_requests(runner, batch, tokens);
    return status;
}

void cli_reset_sessions(const cli_rows_runner *runner, uint32_t batch) {
    for (uint32_t i = 0; runner->engine && i < batch; i++)
        gumbel_session_reset(runner->sessions[i]);
}

gumbel_status cli_run_rows(const cli_rows_runner *runner, uint32_t count, gumbel_error *error) {
    if (!runner->engine)
        return GUMBEL_OK;
    const gumbel_status status = gumbel_step(runner->engine, runner->requests, count, error);
    if (status != GUMBEL_OK || runner->results[0].logits)
        return status;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "the program gives no logits on this backend; export it with --logits");
}

void cli_free_runner(cli_rows_runner *runner) {
    free(runner->sessions);
    free(runner->requests);
    free(runner->results);
}
