/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel perplexity: how well a program predicts a text, and how far its predictions are from another's.
 */
#include "base/status.h"
#include "cli/base/report.h"
#include "cli/command.h"
#include "cli/programs/perplexity_windows.h"

enum { DEFAULT_BATCH = 16, MOST_BATCH = 1024 };

typedef struct perplexity_options {
    const char *file, *against;
    cli_integer count, batch;
    bool second_half, json;
} perplexity_options;

typedef struct perplexity_arguments {
    cli_model_options model;
    perplexity_options perplexity;
} perplexity_arguments;

static const cli_option perplexity_table[] = {
    {.names = "-f --file",
     .argument = "FILE",
     .help = "The text; - is standard input.",
     .type = CLI_STRING,
     .offset = offsetof(perplexity_options, file)},
    {.names = "--against",
     .argument = "OTHER",
     .help = "Another program or checkpoint with the same vocabulary, whose predictions are taken as right: "
             "also print the mean Kullback-Leibler divergence from it, and how often both find the same "
             "token most likely, each with its standard error.",
     .type = CLI_STRING,
     .offset = offsetof(perplexity_options, against)},
    {.names = "-n --max-tokens",
     .argument = "N",
     .help = "Score the text's first N tokens only; 0, the default: all.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX},
     .offset = offsetof(perplexity_options, count)},
    {.names = "-b --batch",
     .argument = "N",
     .help = "Windows run at once; the default is 16. Fewer where there are fewer, or where their states "
             "would take more than a quarter of the memory. On the CPU the result does not depend on it.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = MOST_BATCH},
     .offset = offsetof(perplexity_options, batch)},
    {.names = "--second-half",
     .help = "Of each window score the second half only, and leave out a last window that is not full, as "
             "llama-perplexity does: with -c the same, the numbers can be compared.",
     .type = CLI_FLAG,
     .offset = offsetof(perplexity_options, second_half)},
    {.names = "--json",
     .help = "Print one JSON object.",
     .type = CLI_FLAG,
     .offset = offsetof(perplexity_options, json)},
    {0},
};

/* Positions that a prediction may look back, the same for both programs. */
static uint32_t window_of(const cli_model *model, const cli_model *other) {
    return other->program && other->max_context < model->max_context ? other->max_context
                                                                     : model->max_context;
}

static cli_model_options options_of_other(const perplexity_arguments *arguments) {
    cli_model_options options = arguments->model;
    options.source = (cli_program_options){.path = arguments->perplexity.against};
    return options;
}

static gumbel_status open_other(const perplexity_arguments *arguments, const cli_model *model,
                                cli_model *other, gumbel_error *error) {
    if (!arguments->perplexity.against)
        return GUMBEL_OK;
    const cli_model_options options = options_of_other(arguments);
    gumbel_status status = cli_model_open_program(&options, other, error);
    if (status != GUMBEL_OK || other->info.vocab_size == model->info.vocab_size)
        return status;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: a vocabulary of %u tokens, expected %u as in %s",
                   options.source.path, other->info.vocab_size, model->info.vocab_size,
                   arguments->model.source.path);
}

static gumbel_status read_text(const perplexity_arguments *arguments, const cli_model *model,
                               const cli_model *other, cli_scored_text *text, gumbel_error *error) {
    const perplexity_options *options = &arguments->perplexity;
    const cli_scored_source source = {.program = arguments->model.source.path,
                                      .against = options->against,
                                      .file = options->file,
                                      .window = window_of(model, other),
                                      .count = (uint32_t)options->count.value,
                                      .second_half = options->second_half};
    return cli_read_scored_text(model, other, &source, text, error);
}

/* Opens the programs and reads the text, which says how many slots their engines need. */
static gumbel_status open_all(const perplexity_arguments *arguments, cli_model *model, cli_model *other,
                              cli_scored_text *text, gumbel_error *error) {
    gumbel_status status = cli_model_open_program(&arguments->model, model, error);
    if (status == GUMBEL_OK)
        status = open_other(arguments, model, other, error);
    return status == GUMBEL_OK ? read_text(arguments, model, other, text, error) : status;
}

static gumbel_status start_engines(const perplexity_arguments *arguments, cli_model *model, cli_model *other,
                                   uint32_t slots, gumbel_error *error) {
    cli_model_options options = arguments->model;
    options.slots = (int)slots;
    const gumbel_status status = cli_model_start(&options, false, model, error);
    if (status != GUMBEL_OK || !other->program)
        return status;
    options = options_of_other(arguments);
    options.slots = (int)slots;
    return cli_model_start(&options, false, other, error);
}

static gumbel_status score(const perplexity_arguments *arguments, cli_model *model, cli_model *other,
                           const cli_scored_text *text, cli_scores *scores, gumbel_error *error) {
    const cli_integer *wanted = &arguments->perplexity.batch;
    uint32_t batch;
    gumbel_status status = cli_settle_batch(
        model, other, text, wanted->given ? (uint32_t)wanted->value : DEFAULT_BATCH, &batch, error);
    if (status == GUMBEL_OK)
        status = start_engines(arguments, model, other, batch, error);
    cli_progress progress;
    cli_progress_begin(&progress, false);
    if (status == GUMBEL_OK)
        status = cli_score_windows(model, other, text, batch, &progress, scores, error);
    cli_progress_erase(&progress);
    return status;
}

static void print_scores(const perplexity_arguments *arguments, const cli_model *model,
                         const cli_model *other, const cli_scores *scores) {
    const cli_scored scored = {
        .program = arguments->model.source.path,
        .against = arguments->perplexity.against,
        .file = arguments->perplexity.file,
        .engine = gumbel_engine_description(model->engine),
        .window = window_of(model, other),
    };
    if (arguments->perplexity.json)
        cli_print_scores_json(&scored, scores, stdout);
    else
        cli_print_scores(scores, stdout);
}

static int perplexity(void *given) {
    const perplexity_arguments *arguments = given;
    if (!arguments->perplexity.file)
        return cli_fail_usage("perplexity needs -f FILE, the text");
    if (arguments->model.launched && arguments->perplexity.against)
        return cli_fail_usage("--launched runs one program, and --against names another");
    cli_model model = {0}, other = {0};
    cli_scored_text text = {0};
    cli_scores scores = {0};
    gumbel_error error;
    gumbel_status status = open_all(arguments, &model, &other, &text, &error);
    if (status == GUMBEL_OK)
        status = score(arguments, &model, &other, &text, &scores, &error);
    if (status == GUMBEL_OK)
        print_scores(arguments, &model, &other, &scores);
    cli_tokens_free(&text.tokens);
    cli_model_close(&other);
    cli_model_close(&model);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_perplexity = {
    .name = "perplexity",
    .summary = "measure how well a program predicts a text",
    .synopsis = "PROGRAM -f FILE [--against OTHER] [options]",
    .description =
        "Prints the perplexity of a text with its standard error: exp of the mean of -log p over its tokens, "
        "each predicted from those before it. A text longer than the context is cut into windows, several of "
        "which are run at once: a smaller -c, which makes more of them, is faster, and predicts from less.",
    .operands =
        (const cli_operand[]){
            {"PROGRAM", offsetof(perplexity_arguments, model.source.path), true, CLI_PROGRAM_HELP}, {0}},
    .groups =
        (const cli_option_group[]){
            {.title = "Options",
             .options = perplexity_table,
             .offset = offsetof(perplexity_arguments, perplexity)},
            {.title = "Program",
             .options = cli_program_table,
             .offset = offsetof(perplexity_arguments, model.source)},
            {.title = "Machine", .options = cli_model_table, .offset = offsetof(perplexity_arguments, model)},
            {0}},
    .examples = (const cli_example[]){{"gumbel perplexity int4.gumbel -f text.txt --against full.gumbel",
                                       "What 4 bits cost on this text."},
                                      {0}},
    .arguments_size = sizeof(perplexity_arguments),
    .run = perplexity,
};
