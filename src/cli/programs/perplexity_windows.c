/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_windows.h"

#include "base/machine.h"
#include "base/status.h"
#include "cli/base/storage.h"

#include <stdlib.h>

/* ---- How many ------------------------------------------------------------------------------------------ */

/* Adds what the states of a full window take; nothing for a model that there is not. */
static gumbel_status add_state_bytes(const cli_model *model, uint32_t window, double *bytes,
                                     gumbel_error *error) {
    const gumbel_step_shape shape = {
        .size = sizeof shape, .sequences = 1, .tokens = 1, .position = window - 1};
    gumbel_step_costs costs = {.size = sizeof costs};
    if (!model->program)
        return GUMBEL_OK;
    const gumbel_status status = gumbel_program_get_costs(model->program, &shape, &costs, error);
    *bytes += costs.state_bytes;
    return status;
}

/* Half of the machine's memory is the weights', and another quarter everybody else's. */
static double memory_for_states(void) {
    return (double)gb_machine_bytes() / 4;
}

gumbel_status cli_settle_batch(const cli_model *model, const cli_model *other, const cli_scored_text *text,
                               uint32_t wanted, uint32_t *batch, gumbel_error *error) {
    const size_t windows = cli_count_windows(text);
    double bytes = 0;
    gumbel_status status = add_state_bytes(model, text->window, &bytes, error);
    if (status == GUMBEL_OK)
        status = add_state_bytes(other, text->window, &bytes, error);
    *batch = windows < wanted ? (uint32_t)windows : wanted;
    if (status == GUMBEL_OK && bytes * *batch > memory_for_states())
        *batch = (uint32_t)(memory_for_states() / bytes);
    *batch = *batch > 1 ? *batch : 1;
    return status;
}

/* ---- Sequences that are run side by side, one token of each in a step ---------------------------------- */

/* All zero for a model that there is not, of which nothing is run then. */
typedef struct rows_runner {
    gumbel_engine *engine;
    gumbel_session **sessions; /* [batch], the first one the model's own */
    gumbel_request *requests;  /* [batch] */
    gumbel_result *results;    /* [batch]: logits are valid until the engine's next step */
} rows_runner;

static const gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_k = 0, .top_p = 1};

static gumbel_status make_sessions(const cli_model *model, uint32_t batch, gumbel_session **sessions,
                                   gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    sessions[0] = model->session;
    for (uint32_t i = 1; i < batch && status == GUMBEL_OK; i++)
        status = gumbel_session_create(model->engine, &sessions[i], error);
    return status;
}

static void fill_requests(const rows_runner *runner, uint32_t batch, const int32_t *tokens) {
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

/* tokens[i] is where each step finds that of sequence i. The model's engine ends the sessions. Free with
 * free_runner, also after a failure. */
static gumbel_status make_runner(const cli_model *model, uint32_t batch, const int32_t *tokens,
                                 rows_runner *runner, gumbel_error *error) {
    *runner = (rows_runner){.engine = model->engine};
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

/* Empties the sessions of all batch sequences. */
static void reset_sessions(const rows_runner *runner, uint32_t batch) {
    for (uint32_t i = 0; runner->engine && i < batch; i++)
        gumbel_session_reset(runner->sessions[i]);
}

/* Runs one token of each of the first count sequences. */
static gumbel_status run_rows(const rows_runner *runner, uint32_t count, gumbel_error *error) {
    if (!runner->engine)
        return GUMBEL_OK;
    const gumbel_status status = gumbel_step(runner->engine, runner->requests, count, error);
    if (status != GUMBEL_OK || runner->results[0].logits)
        return status;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "the program gives no logits on this backend; export it with --logits");
}

static void free_runner(rows_runner *runner) {
    free(runner->sessions);
    free(runner->requests);
    free(runner->results);
}

/* ---- Windows ------------------------------------------------------------------------------------------- */

/* What runs windows that stand side by side in the text. */
typedef struct scoring {
    const cli_scored_text *text;
    uint32_t vocab_size, threads, batch;
    rows_runner model, other;
    int32_t *tokens;             /* [batch] of a step */
    cli_scored_row *rows;        /* [batch] of a step */
    cli_prediction *predictions; /* of all the windows' tokens, in the text's order */
} scoring;

static uint32_t threads_of(const cli_model *model) {
    gumbel_engine_info info = {.size = sizeof info};
    gumbel_engine_get_info(model->engine, &info, NULL); /* it cannot fail */
    return info.threads > 0 ? info.threads : 1;
}

static gumbel_status prepare(const cli_model *model, const cli_model *other, scoring *s,
                             gumbel_error *error) {
    const size_t runs = cli_count_runs(s->text), most = (size_t)s->batch * s->text->window;
    s->vocab_size = model->info.vocab_size;
    s->threads = threads_of(model);
    s->tokens = cli_allocate(s->batch, sizeof *s->tokens);
    s->rows = cli_allocate(s->batch, sizeof *s->rows);
    s->predictions = cli_allocate(most < runs ? most : runs, sizeof *s->predictions);
    const gumbel_status status = make_runner(model, s->batch, s->tokens, &s->model, error);
    return status == GUMBEL_OK ? make_runner(other, s->batch, s->tokens, &s->other, error) : status;
}

static void free_scoring(scoring *s) {
    free_runner(&s->model);
    free_runner(&s->other);
    free(s->tokens);
    free(s->rows);
    free(s->predictions);
}

static void score_position(const scoring *s, size_t begin, uint32_t position, uint32_t count) {
    const cli_scored_text *text = s->text;
    for (uint32_t i = 0; i < count; i++) {
        const size_t offset = (size_t)i * text->window + position;
        s->rows[i] = (cli_scored_row){.logits = s->model.results[i].logits,
                                      .reference = s->other.engine ? s->other.results[i].logits : NULL,
                                      .token = text->tokens.ids[begin + offset + 1],
                                      .prediction = &s->predictions[offset]};
    }
    cli_score_rows(s->rows, count, s->vocab_size, s->threads);
}

/* Runs the same position of windows that begin at an index of the text. */
static gumbel_status run_position(const scoring *s, size_t begin, uint32_t position, uint32_t count,
                                  gumbel_error *error) {
    for (uint32_t i = 0; i < count; i++)
        s->tokens[i] = cli_run_token(s->text, begin + (size_t)i * s->text->window + position, position);
    gumbel_status status = run_rows(&s->model, count, error);
    if (status == GUMBEL_OK)
        status = run_rows(&s->other, count, error);
    if (status == GUMBEL_OK && cli_is_scored(s->text, position))
        score_position(s, begin, position, count);
    return status;
}

/* Of count tokens from an index of the text, in windows of which the last may be a shorter one. */
static gumbel_status run_windows(const scoring *s, size_t begin, size_t count, cli_progress *progress,
                                 gumbel_error *error) {
    const uint32_t window = s->text->window;
    size_t done = begin;
    reset_sessions(&s->model, s->batch);
    reset_sessions(&s->other, s->batch);
    for (uint32_t position = 0; position < window && position < count; position++) {
        const size_t reached = (count - position - 1) / window + 1; /* windows that are so long */
        const gumbel_status status = run_position(s, begin, position, (uint32_t)reached, error);
        if (status != GUMBEL_OK)
            return status;
        cli_progress_count(progress, "tokens", done += reached, cli_count_runs(s->text));
    }
    return GUMBEL_OK;
}

static void add_predictions(const scoring *s, size_t count, cli_scores *scores) {
    for (size_t i = 0; i < count; i++)
        if (cli_is_scored(s->text, (uint32_t)(i % s->text->window)))
            cli_add_prediction(scores, &s->predictions[i], s->other.engine != NULL);
}

static gumbel_status score_text(const scoring *s, cli_progress *progress, cli_scores *scores,
                                gumbel_error *error) {
    const size_t runs = cli_count_runs(s->text), most = (size_t)s->batch * s->text->window;
    for (size_t begin = 0; begin < runs; begin += most) {
        const size_t count = runs - begin < most ? runs - begin : most;
        const gumbel_status status = run_windows(s, begin, count, progress, error);
        if (status != GUMBEL_OK)
            return status;
        add_predictions(s, count, scores);
    }
    return GUMBEL_OK;
}

gumbel_status cli_score_windows(const cli_model *model, const cli_model *other, const cli_scored_text *text,
                                uint32_t batch, cli_progress *progress, cli_scores *scores,
                                gumbel_error *error) {
    scoring s = {.text = text, .batch = batch};
    gumbel_status status = prepare(model, other, &s, error);
    if (status == GUMBEL_OK)
        status = score_text(&s, progress, scores, error);
    free_scoring(&s);
    return status;
}
