/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/program.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/base/measure.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 64, DEFAULT_REPETITIONS = 3, DEFAULT_DRAFT_ROWS = 4 };

/* ---- The tests ----------------------------------------------------------------------------------------- */

static uint32_t largest(const cli_integers *list) {
    int64_t most = 0;
    for (size_t i = 0; i < list->count; i++)
        most = list->values[i] > most ? list->values[i] : most;
    return (uint32_t)most;
}

static cli_integers list_of(size_t count, const int64_t *values) {
    cli_integers list = {.count = count};
    memcpy(list.values, values, count * sizeof *values);
    return list;
}

/* Takes the entries out that do not fit. */
static void keep_up_to(cli_integers *list, int64_t most) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i] <= most)
            list->values[kept++] = list->values[i];
    list->count = kept;
}

static void settle_options(const cli_bench_options *options, cli_bench_program *run) {
    run->prompts = options->prompts;
    run->depths = options->depths;
    run->batches = options->batches;
    run->rows = options->rows;
    run->acceptances = options->acceptances;
    run->no_limits = options->no_limits;
    run->tokens = options->tokens.given ? (uint32_t)options->tokens.value : DEFAULT_TOKENS;
    run->repetitions =
        options->repetitions.given ? (uint32_t)options->repetitions.value : DEFAULT_REPETITIONS;
    if (run->prompts.count == 0)
        run->prompts = list_of(3, (const int64_t[]){64, 256, 1024});
    if (run->depths.count == 0)
        run->depths = list_of(2, (const int64_t[]){0, 2048});
    if (run->batches.count == 0)
        run->batches = list_of(1, (const int64_t[]){1});
    if (run->rows.count == 0)
        run->rows = list_of(run->acceptances.count > 0 ? 2 : 1, (const int64_t[]){1, DEFAULT_DRAFT_ROWS});
}

/* Positions that the tokens to decode take at most: where all drafts are accepted. */
static uint32_t new_positions(const cli_bench_program *run) {
    return run->tokens * largest(&run->rows);
}

/* Defaults that are too long for the context are left out; explicit ones are an error then. */
static gumbel_status fit_context(const cli_bench_options *options, cli_bench_program *run, uint32_t context,
                                 gumbel_error *error) {
    const uint32_t added = new_positions(run);
    int64_t room = (int64_t)context - added;
    if (options->prompts.count == 0)
        keep_up_to(&run->prompts, room);
    if (options->depths.count == 0)
        keep_up_to(&run->depths, room);
    uint32_t most_prompt = largest(&run->prompts), depth = largest(&run->depths);
    uint32_t most_depth = run->tokens > 0 ? cli_bench_begin_depth(depth) : 0;
    uint32_t most = most_prompt > most_depth ? most_prompt : most_depth;
    if (room >= 0 && (int64_t)most <= room)
        return GUMBEL_OK;
    if (most_prompt >= most_depth)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "--prompt-tokens %u and %u new tokens: the context has %u positions", most_prompt,
                       added, context);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "--depth %u%s and %u new tokens: the context has %u positions", depth,
                   depth < most_depth ? ", where one token stands before," : "", added, context);
}

static void add_test(cli_bench_program *run, cli_bench_test test) {
    run->results.tests[run->results.test_count++] = test;
}

/* With the depth's drafts of each length. */
static void add_drafted(cli_bench_program *run, uint32_t depth) {
    for (size_t r = 0; r < run->rows.count; r++)
        for (size_t a = 0; a < run->acceptances.count && run->rows.values[r] > 1; a++)
            add_test(run, (cli_bench_test){.kind = CLI_BENCH_DRAFTED,
                                           .tokens = run->tokens,
                                           .depth = depth,
                                           .batch = 1,
                                           .rows = (uint32_t)run->rows.values[r],
                                           .acceptance = (uint32_t)run->acceptances.values[a]});
}

static void list_tests(cli_bench_program *run) {
    const size_t of_depth = run->rows.count * (run->batches.count + run->acceptances.count),
                 most = run->prompts.count + 1 + run->depths.count * of_depth;
    run->results.tests = cli_allocate(most, sizeof *run->results.tests);
    uint32_t tokens = run->tokens, answered = 0;
    for (size_t i = 0; i < run->prompts.count; i++) {
        uint32_t prompt = (uint32_t)run->prompts.values[i];
        if (prompt > 0)
            add_test(run, (cli_bench_test){.kind = CLI_BENCH_PROMPT, .prompt = prompt});
        if (i == run->prompts.count / 2) /* of the usual three the middle one */
            answered = prompt;
    }
    for (size_t d = 0; d < run->depths.count && tokens > 0; d++)
        for (size_t b = 0; b < run->batches.count; b++)
            for (size_t r = 0; r < run->rows.count; r++)
                add_test(run, (cli_bench_test){.kind = CLI_BENCH_DECODE,
                                               .tokens = tokens,
                                               .depth = (uint32_t)run->depths.values[d],
                                               .batch = (uint32_t)run->batches.values[b],
                                               .rows = (uint32_t)run->rows.values[r]});
    for (size_t d = 0; d < run->depths.count && tokens > 0; d++)
        add_drafted(run, (uint32_t)run->depths.values[d]);
    if (answered > 0 && tokens > 0)
        add_test(run, (cli_bench_test){.kind = CLI_BENCH_ANSWER, .prompt = answered, .tokens = tokens});
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Opens the model as often as there are repetitions; the last one stays open. */
static gumbel_status open_model(const cli_model_options *options, cli_bench_program *run,
                                gumbel_error *error) {
    cli_model *model = &run->bench.model;
    for (uint32_t i = 0; i < run->repetitions; i++) {
        cli_model_close(model);
        double begin = gb_seconds();
        gumbel_status status = cli_model_open(options, false, model, error);
        if (status == GUMBEL_OK)
            status = cli_bench_first_step(model, error);
        if (status != GUMBEL_OK)
            return status;
        double seconds = gb_seconds() - begin;
        cli_average_add(&run->results.load_seconds, model->load_seconds);
        cli_average_add(&run->results.first_token_seconds, seconds);
        if (i == 0)
            run->results.cold_first_token_seconds = seconds;
    }
    return GUMBEL_OK;
}

/* A backend that cannot measure them leaves them 0. */
static gumbel_status measure_limits(cli_bench_program *run, gumbel_machine_limits *limits,
                                    gumbel_error *error) {
    *limits = (gumbel_machine_limits){.size = sizeof *limits};
    if (run->no_limits)
        return GUMBEL_OK;
    gumbel_status status = gumbel_engine_measure_limits(run->bench.model.engine, limits, error);
    if (status == GUMBEL_ERROR_UNSUPPORTED)
        return GUMBEL_OK;
    if (status != GUMBEL_OK)
        return status;
    cli_average_add(&run->results.read_rate, limits->read_bytes_per_second);
    if (limits->int8_products_per_second > 0)
        cli_average_add(&run->results.int8_rate, limits->int8_products_per_second);
    return GUMBEL_OK;
}

static void add_limits(cli_bench_test *test, const gumbel_machine_limits *limits) {
    if (limits->read_bytes_per_second > 0)
        cli_average_add(&test->read_rate, limits->read_bytes_per_second);
    if (limits->int8_products_per_second > 0)
        cli_average_add(&test->int8_rate, limits->int8_products_per_second);
}

/* A test between two measurements of the limits, of which the first was made when the test before it ended.
 */
static gumbel_status measure_test(cli_bench_program *run, cli_bench_test *test, gumbel_machine_limits *limits,
                                  gumbel_error *error) {
    add_limits(test, limits);
    gumbel_status status = cli_bench_run(&run->bench, test, error);
    if (status == GUMBEL_OK)
        status = measure_limits(run, limits, error);
    if (status == GUMBEL_OK)
        add_limits(test, limits);
    return status;
}

/* Each test once, which does not count: what it touches for the first time comes from the file. */
static gumbel_status warm_up(cli_bench_program *run, gumbel_error *error) {
    cli_bench_results *results = &run->results;
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < results->test_count && status == GUMBEL_OK; i++) {
        cli_bench_test once = results->tests[i];
        status = cli_bench_run(&run->bench, &once, error);
    }
    results->peak_megabytes = cli_peak_megabytes(); /* measuring limits takes memory, too */
    return status;
}

/* Everything in turns, so that a machine that is slow for a while is so for all of it. */
static gumbel_status measure_rounds(cli_bench_program *run, gumbel_error *error) {
    cli_bench_results *results = &run->results;
    gumbel_machine_limits limits;
    gumbel_status status = warm_up(run, error);
    if (status == GUMBEL_OK)
        status = measure_limits(run, &limits, error);
    for (uint32_t round = 0; round < run->repetitions && status == GUMBEL_OK; round++)
        for (size_t i = 0; i < results->test_count && status == GUMBEL_OK; i++)
            status = measure_test(run, &results->tests[i], &limits, error);
    return status;
}

static gumbel_status measure_profiles(cli_bench_program *run, gumbel_error *error) {
    cli_bench_results *results = &run->results;
    results->profiles = cli_allocate(results->test_count, sizeof *results->profiles);
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < results->test_count && status == GUMBEL_OK; i++) {
        if (results->tests[i].kind > CLI_BENCH_DECODE)
            continue;                            /* two kinds of steps in one */
        cli_bench_test once = results->tests[i]; /* whose times do not count */
        run->collected = (cli_profile){.is_on = true};
        status = cli_bench_run(&run->bench, &once, error);
        cli_profile_sort(&run->collected);
        results->profiles[i] = run->collected;
    }
    run->collected.is_on = false;
    return status;
}

static gumbel_status prepare(const cli_sampling_options *sampling, const cli_bench_options *options,
                             cli_bench_program *run, gumbel_error *error) {
    cli_bench *bench = &run->bench;
    gumbel_status status = fit_context(options, run, bench->model.max_context, error);
    if (status != GUMBEL_OK)
        return status;
    list_tests(run);
    status = cli_settle_sampling(sampling, &bench->model, &bench->sampling, error);
    if (status != GUMBEL_OK)
        return status;
    bench->sampling.seed = sampling->seed.value; /* 0 rather than drawn: runs are to be compared */
    uint32_t prompt = largest(&run->prompts), depth = largest(&run->depths);
    cli_bench_most most = {
        .sequences = largest(&run->batches), .rows = largest(&run->rows), .tokens = run->tokens + 1};
    most.tokens = prompt > most.tokens ? prompt : most.tokens;
    most.tokens = depth > most.tokens ? depth : most.tokens;
    status = cli_bench_prepare(bench, &run->depths, &most, error);
    for (size_t i = 0; i < run->results.test_count && status == GUMBEL_OK; i++)
        status = cli_bench_find_costs(bench, &run->results.tests[i], error);
    return status;
}

gumbel_status cli_bench_program_measure(const cli_model_options *model, const cli_sampling_options *sampling,
                                        const cli_bench_options *options, cli_bench_program *measured,
                                        gumbel_error *error) {
    cli_model_options model_options = *model;
    measured->results.program = model->source.path;
    measured->results.bench = &measured->bench;
    settle_options(options, measured);
    model_options.slots = cli_bench_slots(&measured->depths, largest(&measured->batches));
    model_options.draft_tokens = largest(&measured->rows) - 1;
    model_options.draft_head = model_options.needs_draft_model = options->acceptances.count > 0;
    if (options->profile) {
        model_options.profile = cli_profile_add;
        model_options.profile_user = &measured->collected;
    }
    cli_forget_peak();
    gumbel_status status = open_model(&model_options, measured, error);
    if (status == GUMBEL_OK)
        status = prepare(sampling, options, measured, error);
    if (status == GUMBEL_OK)
        status = measure_rounds(measured, error);
    return status == GUMBEL_OK && options->profile ? measure_profiles(measured, error) : status;
}

void cli_bench_program_free(cli_bench_program *measured) {
    cli_bench_free(&measured->bench);
    free(measured->results.profiles);
    free(measured->results.tests);
}
