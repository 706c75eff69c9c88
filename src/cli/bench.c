/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel bench: how fast a program runs here, beside what the machine's memory and arithmetic allow.
 */
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/measure.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 64, DEFAULT_REPETITIONS = 3, MOST_LENGTH = 1 << 20, MOST_SEQUENCES = 1024 };

typedef struct bench_options {
    cli_integers prompts, depths, batches;
    cli_integer tokens, repetitions;
    const char *output;
    bool json, profile;
} bench_options;

typedef struct bench_arguments {
    cli_model_options model;
    cli_sampling_options sampling;
    bench_options bench;
} bench_arguments;

static const cli_option bench_table[] = {
    {.names = "-p --prompt-tokens --n-prompt",
     .argument = "LIST",
     .help = "Lengths of prompts, separated by commas; 0 is none. The default is 64,256,1024.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = MOST_LENGTH},
     .offset = offsetof(bench_options, prompts)},
    {.names = "-n --max-new-tokens --n-gen",
     .argument = "N",
     .help = "Tokens to decode, 64 by default; 0 is none.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = MOST_LENGTH},
     .offset = offsetof(bench_options, tokens)},
    {.names = "-d --depth --n-depth",
     .argument = "LIST",
     .help = "Positions that stand before the decoded tokens, the first token's at least. The default is "
             "0,2048.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = MOST_LENGTH},
     .offset = offsetof(bench_options, depths)},
    {.names = "--batch",
     .argument = "LIST",
     .help = "Sequences decoded together. The default is 1.",
     .type = CLI_INTEGERS,
     .range = {.low = 1, .high = MOST_SEQUENCES},
     .offset = offsetof(bench_options, batches)},
    {.names = "-r --repetitions",
     .argument = "N",
     .help = "How often everything is measured, in turns; 3 by default.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 1000},
     .offset = offsetof(bench_options, repetitions)},
    {.names = "--profile",
     .help = "Also run prompts and decoding once more and tell how long each op took.",
     .type = CLI_FLAG,
     .offset = offsetof(bench_options, profile)},
    {.names = "-o --output",
     .argument = "FORMAT",
     .help = "table, the default, or json.",
     .type = CLI_CHOICE,
     .choices = "table json",
     .offset = offsetof(bench_options, output)},
    {.names = "--json",
     .help = "The same as -o json.",
     .type = CLI_FLAG,
     .offset = offsetof(bench_options, json)},
    {0},
};

/* ---- The tests ----------------------------------------------------------------------------------------- */

/* A bench run: the options with their defaults, and what comes of it. */
typedef struct bench_run {
    cli_integers prompts, depths, batches;
    uint32_t tokens, repetitions;
    cli_bench bench;
    cli_bench_results results;
    cli_profile collected; /* what the engine's callback adds to */
} bench_run;

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

static void settle_options(const bench_options *options, bench_run *run) {
    run->prompts = options->prompts;
    run->depths = options->depths;
    run->batches = options->batches;
    run->tokens = options->tokens.given ? (uint32_t)options->tokens.value : DEFAULT_TOKENS;
    run->repetitions =
        options->repetitions.given ? (uint32_t)options->repetitions.value : DEFAULT_REPETITIONS;
    if (run->prompts.count == 0)
        run->prompts = list_of(3, (const int64_t[]){64, 256, 1024});
    if (run->depths.count == 0)
        run->depths = list_of(2, (const int64_t[]){0, 2048});
    if (run->batches.count == 0)
        run->batches = list_of(1, (const int64_t[]){1});
}

/* Defaults that are too long for the context are left out; what was asked for is an error then. */
static gumbel_status fit_context(const bench_options *options, bench_run *run, uint32_t context,
                                 gumbel_error *error) {
    int64_t room = (int64_t)context - run->tokens;
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
        cli_refuse(error, "--prompt-tokens %u and %u new tokens: the context has %u positions", most_prompt,
                   run->tokens, context);
    else
        cli_refuse(error, "--depth %u%s and %u new tokens: the context has %u positions", depth,
                   depth < most_depth ? ", where one token stands before," : "", run->tokens, context);
    return error->status;
}

static void add_test(bench_run *run, cli_bench_test test) {
    run->results.tests[run->results.test_count++] = test;
}

static void list_tests(bench_run *run) {
    const size_t most = CLI_MOST_INTEGERS + 1 + CLI_MOST_INTEGERS * CLI_MOST_INTEGERS;
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
            add_test(run, (cli_bench_test){.kind = CLI_BENCH_DECODE,
                                           .tokens = tokens,
                                           .depth = (uint32_t)run->depths.values[d],
                                           .batch = (uint32_t)run->batches.values[b]});
    if (answered > 0 && tokens > 0)
        add_test(run, (cli_bench_test){.kind = CLI_BENCH_ANSWER, .prompt = answered, .tokens = tokens});
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Opens the model as often as there are repetitions; the last one stays open. */
static gumbel_status open_model(const cli_model_options *options, bench_run *run, gumbel_error *error) {
    cli_model *model = &run->bench.model;
    for (uint32_t i = 0; i < run->repetitions; i++) {
        cli_model_close(model);
        double begin = cli_seconds();
        gumbel_status status = cli_model_open(options, false, model, error);
        if (status == GUMBEL_OK)
            status = cli_bench_first_step(model, error);
        if (status != GUMBEL_OK)
            return status;
        double seconds = cli_seconds() - begin;
        cli_average_add(&run->results.load_seconds, model->load_seconds);
        cli_average_add(&run->results.first_token_seconds, seconds);
        if (i == 0)
            run->results.cold_first_token_seconds = seconds;
    }
    return GUMBEL_OK;
}

/* A backend that cannot measure them leaves them 0. */
static gumbel_status measure_limits(bench_run *run, gumbel_machine_limits *limits, gumbel_error *error) {
    *limits = (gumbel_machine_limits){.size = sizeof *limits};
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
static gumbel_status measure_test(bench_run *run, cli_bench_test *test, gumbel_machine_limits *limits,
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
static gumbel_status warm_up(bench_run *run, gumbel_error *error) {
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
static gumbel_status measure_rounds(bench_run *run, gumbel_error *error) {
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

static gumbel_status measure_profiles(bench_run *run, gumbel_error *error) {
    cli_bench_results *results = &run->results;
    results->profiles = cli_allocate(results->test_count, sizeof *results->profiles);
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < results->test_count && status == GUMBEL_OK; i++) {
        if (results->tests[i].kind == CLI_BENCH_ANSWER)
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

static gumbel_status prepare(const bench_arguments *arguments, bench_run *run, gumbel_error *error) {
    cli_bench *bench = &run->bench;
    gumbel_status status = fit_context(&arguments->bench, run, bench->model.max_context, error);
    if (status != GUMBEL_OK)
        return status;
    list_tests(run);
    status = cli_settle_sampling(&arguments->sampling, &bench->model, &bench->sampling, error);
    if (status != GUMBEL_OK)
        return status;
    bench->sampling.seed = arguments->sampling.seed.value; /* 0 rather than drawn: runs are to be compared */
    uint32_t prompt = largest(&run->prompts), depth = largest(&run->depths);
    uint32_t most_tokens = prompt > depth ? prompt : depth;
    most_tokens = run->tokens + 1 > most_tokens ? run->tokens + 1 : most_tokens;
    status = cli_bench_prepare(bench, &run->depths, largest(&run->batches), most_tokens, error);
    for (size_t i = 0; i < run->results.test_count && status == GUMBEL_OK; i++)
        status = cli_bench_find_costs(bench, &run->results.tests[i], error);
    return status;
}

static gumbel_status measure(const bench_arguments *arguments, bench_run *run, gumbel_error *error) {
    cli_model_options options = arguments->model;
    options.slots = cli_bench_slots(&run->depths, largest(&run->batches));
    if (arguments->bench.profile) {
        options.profile = cli_profile_add;
        options.profile_user = &run->collected;
    }
    gumbel_status status = open_model(&options, run, error);
    if (status == GUMBEL_OK)
        status = prepare(arguments, run, error);
    if (status == GUMBEL_OK)
        status = measure_rounds(run, error);
    return status == GUMBEL_OK && arguments->bench.profile ? measure_profiles(run, error) : status;
}

static int bench(void *given) {
    const bench_arguments *arguments = given;
    const bench_options *options = &arguments->bench;
    bench_run *run = cli_allocate(1, sizeof *run);
    run->results.program = arguments->model.source.path;
    run->results.bench = &run->bench;
    settle_options(options, run);
    gumbel_error error;
    gumbel_status status = measure(arguments, run, &error);
    bool json = options->json || (options->output && strcmp(options->output, "json") == 0);
    if (status == GUMBEL_OK && json)
        cli_bench_print_json(&run->results, stdout);
    else if (status == GUMBEL_OK)
        cli_bench_print_table(&run->results, stdout);
    cli_bench_free(&run->bench);
    free(run->results.profiles);
    free(run->results.tests);
    free(run);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "measure how fast a program runs here",
    .synopsis = "PROGRAM [-p LIST] [-n N] [-d LIST] [--batch LIST] [-r N] [options]",
    .description =
        "Measures prompts up to their first token, decoding after some positions, and an answer as gumbel "
        "run gives it; also the time to load, peak memory, and in the same run the rate at which "
        "this machine's memory is read and 8-bit products are added up. Each result is given as a fraction "
        "of what these two, measured just before and just after it, allow for the bytes and products that "
        "the program needs. Everything is run once before it is measured.\nPrompts are random "
        "tokens, and so is what decoding steps are fed with. Every test draws its tokens with the sampling "
        "settings: the flags, or what the program recommends; with seed 0 unless --seed says otherwise. "
        "Results are means and standard deviations over the repetitions.",
    .operands =
        (const cli_operand[]){
            {"PROGRAM", offsetof(bench_arguments, model.source.path), true, CLI_PROGRAM_HELP}, {0}},
    .groups =
        (const cli_option_group[]){
            {.title = "Options", .options = bench_table, .offset = offsetof(bench_arguments, bench)},
            {.title = "Sampling",
             .options = cli_sampling_table,
             .offset = offsetof(bench_arguments, sampling)},
            {.title = "Program",
             .options = cli_program_table,
             .offset = offsetof(bench_arguments, model.source)},
            {.title = "Machine", .options = cli_model_table, .offset = offsetof(bench_arguments, model)},
            {0}},
    .examples = (const cli_example[]){{"gumbel bench model.gumbel", "Everything, on all cores."},
                                      {"gumbel bench model.gumbel -p 0 -n 128 -d 0 --batch 1,8 -t 4",
                                       "Decoding, one and eight at once."},
                                      {"gumbel bench model.gumbel -p 256 -n 0 --profile",
                                       "Where the time of a prompt goes."},
                                      {0}},
    .arguments_size = sizeof(bench_arguments),
    .run = bench,
};
