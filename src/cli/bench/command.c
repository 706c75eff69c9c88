/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel bench: how fast a program runs here, beside what the machine's memory and arithmetic allow.
 */
#include "cli/command.h"
#include "cli/base/report.h"
#include "cli/bench/formats.h"
#include "cli/bench/program.h"
#include "cli/model/drafts.h"

#include <stdlib.h>

enum { MOST_LENGTH = 1 << 20, MOST_SEQUENCES = 1024, MOST_THREADS = 1024 };

typedef struct bench_arguments {
    cli_model_options model;
    cli_sampling_options sampling;
    cli_bench_options tests;
    cli_words programs; /* besides the model's */
    cli_integers threads;
    const char *format;
    bool json;
} bench_arguments;

static const cli_option bench_table[] = {
    {.names = "-p --prompt-tokens --n-prompt",
     .argument = "LIST",
     .help = "Lengths of prompts, separated by commas; 0 is none. The default is 64,256,1024.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = MOST_LENGTH},
     .offset = offsetof(bench_arguments, tests.prompts)},
    {.names = "-n --max-new-tokens --n-gen",
     .argument = "N",
     .help = "Tokens to decode, 64 by default; 0 is none.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = MOST_LENGTH},
     .offset = offsetof(bench_arguments, tests.tokens)},
    {.names = "-d --depth --n-depth",
     .argument = "LIST",
     .help = "Positions that stand before the decoded tokens, the first token's at least. The default is "
             "0,2048.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = MOST_LENGTH},
     .offset = offsetof(bench_arguments, tests.depths)},
    {.names = "--batch",
     .argument = "LIST",
     .help = "Sequences decoded together. The default is 1.",
     .type = CLI_INTEGERS,
     .range = {.low = 1, .high = MOST_SEQUENCES},
     .offset = offsetof(bench_arguments, tests.batches)},
    {.names = "--rows",
     .argument = "LIST",
     .help =
         "Rows of each sequence in a step of decoding: its token, and a draft of random tokens, which are "
         "accepted by chance alone. The default is 1.",
     .type = CLI_INTEGERS,
     .range = {.low = 1, .high = CLI_BENCH_MOST_ROWS},
     .offset = offsetof(bench_arguments, tests.rows)},
    {.names = "--draft",
     .argument = "PROGRAM",
     .help = "A program that guesses for --draft-acceptance, in place of the program's own draft head.",
     .type = CLI_STRING,
     .offset = offsetof(bench_arguments, model.draft_model)},
    {.names = "--draft-acceptance",
     .argument = "LIST",
     .help =
         "Also decode one sequence with drafts of the program's draft head or of --draft's program, of whose "
         "guesses so many of 100 are accepted: "
         "they are drawn in full, then replaced by right and wrong tokens. A draft has a token less than "
         "the rows of --rows, 1 and 4 by default.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = 100},
     .offset = offsetof(bench_arguments, tests.acceptances)},
    {.names = "-r --repetitions",
     .argument = "N",
     .help = "How often everything is measured, in turns; 3 by default.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 1000},
     .offset = offsetof(bench_arguments, tests.repetitions)},
    {.names = "--no-limits",
     .help =
         "Do not measure what memory and arithmetic allow: quicker, without the bandwidth, the peak and the "
         "parts of them.",
     .type = CLI_FLAG,
     .offset = offsetof(bench_arguments, tests.no_limits)},
    {.names = "--profile",
     .help = "Also run prompts and decoding once more and tell how long each op took.",
     .type = CLI_FLAG,
     .offset = offsetof(bench_arguments, tests.profile)},
    {.names = "-t --threads",
     .argument = "LIST",
     .help = "CPU threads, one number after another; 0, the default, is one per physical core.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = MOST_THREADS},
     .offset = offsetof(bench_arguments, threads)},
    {.names = "-o --output",
     .argument = "FORMAT",
     .help =
         "table, the default; md, a table of Markdown; csv and jsonl, a record for each test; or json, an "
         "array with an object for each program and number of threads.",
     .type = CLI_CHOICE,
     .choices = CLI_BENCH_FORMATS,
     .offset = offsetof(bench_arguments, format)},
    {.names = "--json",
     .help = "The same as -o json.",
     .type = CLI_FLAG,
     .offset = offsetof(bench_arguments, json)},
    {0},
};

/* Formats print what has been measured already, also where a later program fails. */
typedef struct printing {
    const cli_bench_format *format;
    size_t count; /* of results that were printed */
} printing;

static void print_results(printing *p, const cli_bench_results *results) {
    if (p->count == 0 && p->format->begin)
        p->format->begin(stdout);
    p->format->add(results, p->count++ == 0, stdout);
    fflush(stdout);
}

static void end_printing(const printing *p) {
    if (p->count > 0 && p->format->end)
        p->format->end(stdout);
}

/* One program with one number of threads. */
static gumbel_status measure(const bench_arguments *arguments, const char *path, int64_t threads, printing *p,
                             gumbel_error *error) {
    cli_model_options model = arguments->model;
    model.source.path = path;
    model.threads = (cli_integer){.given = true, .value = threads};
    cli_bench_program *measured = cli_allocate(1, sizeof *measured);
    gumbel_status status =
        cli_bench_program_measure(&model, &arguments->sampling, &arguments->tests, measured, error);
    if (status == GUMBEL_OK)
        print_results(p, &measured->results);
    cli_bench_program_free(measured);
    free(measured);
    return status;
}

/* Guesses are measured by how often they are right. */
static bool drafts_are_whole(const bench_arguments *arguments) {
    return !arguments->model.draft_model || arguments->tests.acceptances.count > 0;
}

static int bench(void *given) {
    const bench_arguments *arguments = given;
    if (arguments->model.draft_model && cli_is_choice(arguments->model.draft_model, CLI_DRAFT_WORDS))
        return cli_fail("--draft %s: bench takes a PROGRAM; without one the program's own head guesses",
                        arguments->model.draft_model);
    if (!drafts_are_whole(arguments))
        return cli_fail("--draft needs --draft-acceptance, which says how often its guesses are right");
    const cli_integers *threads = &arguments->threads;
    const cli_words *more = &arguments->programs;
    printing p = {cli_bench_find_format(arguments->json ? "json" : arguments->format), 0};
    gumbel_error error;
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i <= more->count && status == GUMBEL_OK; i++) {
        const char *path = i == 0 ? arguments->model.source.path : more->list[i - 1];
        if (threads->count == 0)
            status = measure(arguments, path, 0, &p, &error);
        for (size_t t = 0; t < threads->count && status == GUMBEL_OK; t++)
            status = measure(arguments, path, threads->values[t], &p, &error);
    }
    end_printing(&p);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "measure how fast a program runs here",
    .synopsis =
        "PROGRAM ... [-p LIST] [-n N] [-d LIST] [--batch LIST] [--rows LIST] [-t LIST] [-r N] [options]",
    .description =
        "Measures prompts up to their first token, decoding after some positions, and an answer as gumbel "
        "run gives it; also the time to load, peak memory, and in the same run the rate at which "
        "this machine's memory is read and 8-bit products are added up. Each result is given as a fraction "
        "of what these two, measured just before and just after it, allow for the bytes and products that "
        "the program needs. Everything is run once before it is measured.\nPrompts are random "
        "tokens, and so is what decoding steps are fed with. Every test draws its tokens with the sampling "
        "settings: the flags, or what the program recommends; with seed 0 unless --seed says otherwise. "
        "Results are means and standard deviations over the repetitions.\n"
        "Several programs and numbers of threads are measured one after another.",
    .operands =
        (const cli_operand[]){
            {"PROGRAM", offsetof(bench_arguments, model.source.path), true, CLI_PROGRAM_HELP}, {0}},
    .rest = &(const cli_operand){"PROGRAM ...", offsetof(bench_arguments, programs), false,
                                 "Others to measure after it."},
    .groups = (const cli_option_group[]){{.title = "Options", .options = bench_table},
                                         {.title = "Sampling",
                                          .options = cli_sampling_table,
                                          .offset = offsetof(bench_arguments, sampling)},
                                         {.title = "Program",
                                          .options = cli_program_table,
                                          .offset = offsetof(bench_arguments, model.source)},
                                         {.title = "Machine",
                                          .options = cli_model_table + 1, /* --threads is among the options */
                                          .offset = offsetof(bench_arguments, model)},
                                         {0}},
    .examples = (const cli_example[]){{"gumbel bench model.gumbel", "Everything, on all cores."},
                                      {"gumbel bench model.gumbel -p 0 -n 128 -d 0 --batch 1,8 -t 4",
                                       "Decoding, one and eight at once."},
                                      {"gumbel bench model.gumbel -p 0 -d 0 --rows 1,2,4,8",
                                       "What it costs to verify a draft of one, three and seven tokens."},
                                      {"gumbel bench int8.gumbel int4.gumbel -t 1,2,4 -o md",
                                       "Two programs, each on one, two and four threads, to be pasted."},
                                      {"gumbel bench model.gumbel -p 256 -n 0 --profile",
                                       "Where the time of a prompt goes."},
                                      {0}},
    .arguments_size = sizeof(bench_arguments),
    .run = bench,
};
