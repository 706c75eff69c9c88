/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/measure.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/bench/drafted.h"
#include "cli/model/generator.h"

#include <stdlib.h>

/* ---- Preparing ----------------------------------------------------------------------------------------- */

uint32_t cli_bench_begin_depth(uint32_t depth) {
    return depth > 0 ? depth : 1;
}

int cli_bench_slots(const cli_integers *depths, uint32_t most_sequences) {
    return 1 + (int)depths->count + (int)most_sequences; /* the model's own session is one */
}

/* Numbers that look random (Steele et al., Fast splittable pseudorandom number generators, 2014): real text
 * would do as well, equal tokens would all go to the same experts. */
static int32_t made_up_token(uint64_t index, uint32_t vocab_size) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int32_t)((z ^ (z >> 31)) % vocab_size);
}

/* Runs a prompt whose last chunk asks for the next token. */
static gumbel_status run_prompt(const cli_model *model, gumbel_session *session, const int32_t *tokens,
                                uint32_t count, const gumbel_sampling *sampling, gumbel_error *error) {
    gumbel_session_reset(session);
    uint32_t last = (count - 1) % model->prefill_chunk + 1;
    GB_TRY(gumbel_session_append(session, tokens, count - last, error));
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = tokens + (count - last),
                              .token_count = last,
                              .result = &result,
                              .sampling = sampling};
    return gumbel_step(model->engine, &request, 1, error);
}

static const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};

/* The depth's prompt, behind which a token was drawn. */
static gumbel_status make_base(cli_bench *bench, uint32_t depth, gumbel_error *error) {
    gumbel_session **base = &bench->bases[bench->depth_count];
    bench->depths[bench->depth_count++] = depth;
    if (depth < 2)
        return GUMBEL_OK;
    GB_TRY(gumbel_session_create(bench->model.engine, base, error));
    return run_prompt(&bench->model, *base, bench->tokens.ids, depth, &greedy, error);
}

gumbel_status cli_bench_prepare(cli_bench *bench, const cli_integers *depths, const cli_bench_most *most,
                                gumbel_error *error) {
    bench->most = *most;
    bench->sequences = cli_allocate(most->sequences, sizeof *bench->sequences);
    bench->requests = cli_allocate(most->sequences, sizeof *bench->requests);
    bench->results = cli_allocate(most->rows, sizeof *bench->results);
    for (uint32_t r = 0; r < most->rows; r++)
        bench->results[r].size = sizeof *bench->results;
    uint64_t count = (uint64_t)most->tokens * most->sequences + most->rows;
    for (uint64_t i = 0; i < count; i++)
        cli_tokens_add(&bench->tokens, made_up_token(i, bench->model.info.vocab_size));
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < depths->count && status == GUMBEL_OK; i++)
        status = make_base(bench, (uint32_t)depths->values[i], error);
    return status;
}

void cli_bench_free(cli_bench *bench) {
    for (size_t i = 0; i < bench->depth_count; i++)
        gumbel_session_destroy(bench->bases[i]);
    free(bench->sequences);
    free(bench->requests);
    free(bench->results);
    cli_tokens_free(&bench->tokens);
    cli_model_close(&bench->model);
    *bench = (cli_bench){0};
}

/* ---- Costs --------------------------------------------------------------------------------------------- */

static gumbel_status add_step(const cli_bench *bench, cli_bench_test *test, gumbel_step_shape shape,
                              gumbel_error *error) {
    gumbel_step_costs costs = {.size = sizeof costs};
    shape.size = sizeof shape;
    GB_TRY(gumbel_program_get_costs(bench->model.program, &shape, &costs, error));
    test->read_bytes += costs.weight_bytes + costs.state_bytes;
    test->int8_products += costs.int8_products;
    return GUMBEL_OK;
}

gumbel_status cli_bench_find_costs(const cli_bench *bench, cli_bench_test *test, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    uint32_t position = 0, chunk = bench->model.prefill_chunk;
    while (position < test->prompt && status == GUMBEL_OK) {
        uint32_t tokens = test->prompt - position < chunk ? test->prompt - position : chunk;
        gumbel_step_shape shape = {.sequences = 1,
                                   .tokens = tokens,
                                   .position = position,
                                   .wants_tokens = position + tokens == test->prompt};
        status = add_step(bench, test, shape, error);
        position += tokens;
    }
    if (test->kind == CLI_BENCH_DRAFTED) /* which steps there are is left to chance */
        return status;
    bool is_answer = test->kind == CLI_BENCH_ANSWER; /* its prompt gave the first token */
    uint32_t first = is_answer ? test->prompt : cli_bench_begin_depth(test->depth);
    for (uint32_t i = is_answer ? 1 : 0; i < test->tokens && status == GUMBEL_OK; i++) {
        gumbel_step_shape shape = {.sequences = is_answer ? 1 : test->batch,
                                   .tokens = is_answer ? 1 : test->rows,
                                   .position = first + i - (is_answer ? 1 : 0),
                                   .wants_tokens = true};
        status = add_step(bench, test, shape, error);
    }
    return status;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

gumbel_status cli_bench_first_step(cli_model *model, gumbel_error *error) {
    int32_t token = made_up_token(0, model->info.vocab_size);
    return run_prompt(model, model->session, &token, 1, &greedy, error);
}

static gumbel_status measure_prompt(cli_bench *bench, cli_bench_test *test, gumbel_error *error) {
    gumbel_session_set_seed(bench->model.session, bench->sampling.seed);
    double begin = gb_seconds();
    gumbel_status status = run_prompt(&bench->model, bench->model.session, bench->tokens.ids, test->prompt,
                                      &bench->sampling.values, error);
    double seconds = gb_seconds() - begin;
    if (status != GUMBEL_OK)
        return status;
    cli_average_add(&test->seconds, seconds);
    cli_average_add(&test->rate, test->prompt / seconds);
    return GUMBEL_OK;
}

/* A step of all sequences, each with its i-th token, and behind it those that follow as a draft. */
static gumbel_status run_step(cli_bench *bench, const cli_bench_test *test, uint32_t i, uint32_t rows,
                              gumbel_error *error) {
    for (uint32_t b = 0; b < test->batch; b++) {
        const int32_t *token = &bench->tokens.ids[i * test->batch + b];
        bench->requests[b] = (gumbel_request){.size = sizeof *bench->requests,
                                              .session = bench->sequences[b],
                                              .tokens = token,
                                              .token_count = 1,
                                              .result = bench->results,
                                              .sampling = &bench->sampling.values,
                                              .draft = token + 1,
                                              .draft_count = rows - 1};
    }
    return gumbel_step(bench->model.engine, bench->requests, test->batch, error);
}

/* NULL: of no positions. */
static const gumbel_session *base_of(const cli_bench *bench, uint32_t depth) {
    for (size_t i = 0; i < bench->depth_count; i++)
        if (bench->depths[i] == depth)
            return bench->bases[i];
    return NULL;
}

/* Sequences of the depth: copies of its base, or what a token begins, all with the same seed, that have drawn
 * their first token. A prompt's last token is not decoding: a backend may have other kernels for it. */
static gumbel_status begin_sequences(cli_bench *bench, const cli_bench_test *test, gumbel_error *error) {
    const gumbel_session *base = base_of(bench, test->depth);
    gumbel_status status = GUMBEL_OK;
    for (uint32_t b = 0; b < test->batch && status == GUMBEL_OK; b++) {
        gumbel_session **sequence = &bench->sequences[b];
        status = base ? gumbel_session_fork(base, sequence, error)
                      : gumbel_session_create(bench->model.engine, sequence, error);
        if (status == GUMBEL_OK)
            gumbel_session_set_seed(*sequence, bench->sampling.seed);
    }
    return status == GUMBEL_OK && !base ? run_step(bench, test, 0, 1, error) : status;
}

static gumbel_status decode(cli_bench *bench, const cli_bench_test *test, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    for (uint32_t i = 1; i <= test->tokens && status == GUMBEL_OK; i++)
        status = run_step(bench, test, i, test->rows, error);
    return status;
}

static gumbel_status measure_decode(cli_bench *bench, cli_bench_test *test, gumbel_error *error) {
    gumbel_status status = begin_sequences(bench, test, error);
    double begin = gb_seconds();
    if (status == GUMBEL_OK)
        status = decode(bench, test, error);
    double seconds = gb_seconds() - begin;
    for (uint32_t b = 0; b < test->batch; b++) {
        gumbel_session_destroy(bench->sequences[b]);
        bench->sequences[b] = NULL;
    }
    if (status != GUMBEL_OK)
        return status;
    cli_average_add(&test->seconds, seconds);
    cli_average_add(&test->rate, (double)test->tokens * test->batch / seconds);
    return GUMBEL_OK;
}

static gumbel_status measure_answer(cli_bench *bench, cli_bench_test *test, gumbel_error *error) {
    gumbel_session_reset(bench->model.session);
    cli_generator generator = {.model = &bench->model};
    cli_generator_set_seed(&generator, bench->sampling.seed);
    gumbel_generate_options options = {.size = sizeof options,
                                       .sampling = &bench->sampling.values,
                                       .max_new_tokens = test->tokens,
                                       .ignore_stop = true};
    double begin = gb_seconds(), first = 0;
    gumbel_status status = cli_generator_begin(&generator, bench->tokens.ids, test->prompt, &options, error);
    for (uint32_t i = 0; i < test->tokens && status == GUMBEL_OK; i++) {
        gumbel_generated generated = {.size = sizeof generated};
        status = cli_generator_next(&generator, &generated, error);
        if (i == 0)
            first = gb_seconds() - begin;
    }
    double seconds = gb_seconds() - begin;
    cli_generator_free(&generator);
    if (status != GUMBEL_OK)
        return status;
    cli_average_add(&test->seconds, seconds);
    cli_average_add(&test->rate, (test->prompt + test->tokens) / seconds);
    if (test->tokens > 1)
        cli_average_add(&test->decode_rate, (test->tokens - 1) / (seconds - first));
    return GUMBEL_OK;
}

gumbel_status cli_bench_run(cli_bench *bench, cli_bench_test *test, gumbel_error *error) {
    switch (test->kind) {
    case CLI_BENCH_PROMPT:
        return measure_prompt(bench, test, error);
    case CLI_BENCH_DECODE:
        return measure_decode(bench, test, error);
    case CLI_BENCH_DRAFTED:
        return cli_bench_measure_drafted(bench, test, base_of(bench, test->depth), error);
    default:
        return measure_answer(bench, test, error);
    }
}
