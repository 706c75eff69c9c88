/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel perplexity: how well a program predicts a text, and how far its predictions are from another's.
 */
#include "cli/base/files.h"
#include "cli/base/progress.h"
#include "cli/base/report.h"
#include "cli/command.h"
#include "cli/model/model.h"
#include "cli/model/prompt.h"
#include "cli/programs/perplexity_scores.h"

#include <string.h>

typedef struct perplexity_options {
    const char *file, *against;
    cli_integer count;
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

/* Runs one token; *row is what follows it, valid until the engine's next step. */
static gumbel_status run_token(const cli_model *model, int32_t token, const float **row,
                               gumbel_error *error) {
    gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_k = 0, .top_p = 1};
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = model->session,
                              .tokens = &token,
                              .token_count = 1,
                              .result = &result,
                              .sampling = &greedy};
    gumbel_status status = gumbel_step(model->engine, &request, 1, error);
    *row = result.logits;
    if (status == GUMBEL_OK && !*row) {
        cli_refuse(error, "the program gives no logits on this backend; export it with --logits");
        status = error->status = GUMBEL_ERROR_UNSUPPORTED;
    }
    return status;
}

/* Positions that a prediction may look back, the same for both programs. */
static uint32_t window_of(const cli_model *model, const cli_model *other) {
    return other->program && other->max_context < model->max_context ? other->max_context
                                                                     : model->max_context;
}

/* The text's tokens, and what of them is scored. */
typedef struct scoring {
    cli_tokens tokens;
    bool begins_with_bos; /* a token that is not the text's */
    bool is_half;         /* the second half of each full window */
    uint32_t window;
} scoring;

static bool is_scored(const scoring *s, uint32_t position) {
    return !s->is_half || (position >= s->window / 2 && position + 1 < s->window);
}

/* Tokens that are run: all but the last, or those of full windows. */
static size_t count_runs(const scoring *s) {
    return s->is_half ? s->tokens.count / s->window * s->window : s->tokens.count - 1;
}

static gumbel_status score_token(const cli_model *model, const cli_model *other, const scoring *s,
                                 size_t index, uint32_t position, cli_scores *scores, gumbel_error *error) {
    const float *row = NULL, *reference = NULL;
    const int32_t token = s->tokens.ids[position == 0 && s->begins_with_bos ? 0 : index];
    gumbel_status status = run_token(model, token, &row, error);
    if (status == GUMBEL_OK && other->program)
        status = run_token(other, token, &reference, error);
    if (status == GUMBEL_OK && is_scored(s, position))
        cli_add_prediction(scores, row, reference, model->info.vocab_size, s->tokens.ids[index + 1]);
    return status;
}

/* A text longer than the context is cut into windows. Each begins with the model's bos, where it expects one;
 * the token after a window's beginning is the first one that it may score. */
static gumbel_status score_text(const cli_model *model, const cli_model *other, const scoring *s,
                                cli_progress *progress, cli_scores *scores, gumbel_error *error) {
    const size_t count = count_runs(s);
    for (size_t i = 0; i < count; i++) {
        const uint32_t position = (uint32_t)(i % s->window);
        if (position == 0) {
            gumbel_session_reset(model->session);
            if (other->program)
                gumbel_session_reset(other->session);
        }
        const gumbel_status status = score_token(model, other, s, i, position, scores, error);
        if (status != GUMBEL_OK)
            return status;
        cli_progress_count(progress, "tokens", i + 1, count);
    }
    return GUMBEL_OK;
}

static const gumbel_encode_options encode_options = {.size = sizeof encode_options, .add_special = true};

/* Whether encoding puts bos before a text. */
static bool adds_bos(const cli_model *model) {
    int32_t ids[16];
    size_t count = 0;
    return gumbel_encode(model->tokenizer, "", 0, &encode_options, ids, 16, &count, NULL) == GUMBEL_OK &&
           count > 0 && ids[0] == model->info.bos_token;
}

/* Two vocabularies of one size may still be different ones; an other without a tokenizer is believed. */
static gumbel_status check_same_tokens(const cli_model *other, const char *program, const char *against,
                                       const cli_text *text, const cli_tokens *tokens, gumbel_error *error) {
    cli_tokens found = {0};
    if (!other->tokenizer)
        return GUMBEL_OK;
    gumbel_status status =
        cli_encode_text(other->tokenizer, text->bytes, text->length, &encode_options, &found, error);
    bool is_same = found.count == tokens->count &&
                   (found.count == 0 || memcmp(found.ids, tokens->ids, found.count * sizeof *found.ids) == 0);
    cli_tokens_free(&found);
    if (status != GUMBEL_OK || is_same)
        return status;
    cli_refuse(error, "%s: its tokenizer gives other tokens for the text than that of %s", against, program);
    return error->status = GUMBEL_ERROR_ARGUMENT;
}

static gumbel_status read_tokens(const cli_model *model, const cli_model *other,
                                 const perplexity_arguments *arguments, cli_tokens *tokens,
                                 gumbel_error *error) {
    const perplexity_options *options = &arguments->perplexity;
    const char *program = arguments->model.source.path;
    cli_text text = {0};
    gumbel_status status = cli_read_file(options->file, &text, error);
    if (status == GUMBEL_OK && !model->tokenizer) {
        cli_refuse(error, "%s: the program has no tokenizer", program);
        status = GUMBEL_ERROR_ARGUMENT;
    }
    if (status == GUMBEL_OK)
        status = cli_encode_text(model->tokenizer, text.bytes, text.length, &encode_options, tokens, error);
    if (status == GUMBEL_OK)
        status = check_same_tokens(other, program, options->against, &text, tokens, error);
    cli_text_free(&text);
    if (status == GUMBEL_OK && options->count.value > 0 && tokens->count > (size_t)options->count.value)
        tokens->count = (size_t)options->count.value;
    return status;
}

/* Reads the text, and checks that there is something to score. */
static gumbel_status begin_scoring(const cli_model *model, const cli_model *other,
                                   const perplexity_arguments *arguments, scoring *s, gumbel_error *error) {
    const perplexity_options *options = &arguments->perplexity;
    *s = (scoring){.is_half = options->second_half, .window = window_of(model, other)};
    const gumbel_status status = read_tokens(model, other, arguments, &s->tokens, error);
    if (status != GUMBEL_OK)
        return status;
    s->begins_with_bos = adds_bos(model);
    const size_t least = s->is_half ? s->window : 2;
    if (s->is_half && s->window < 4) {
        cli_refuse(error, "--second-half: windows of %u tokens, expected 4 or more (-c)", s->window);
        return error->status = GUMBEL_ERROR_ARGUMENT;
    }
    if (s->tokens.count >= least)
        return GUMBEL_OK;
    cli_refuse(error, "%s: %zu tokens, expected %zu or more in windows of %u", options->file, s->tokens.count,
               least, s->window);
    return error->status = GUMBEL_ERROR_ARGUMENT;
}

static gumbel_status open_other(const perplexity_arguments *arguments, const cli_model *model,
                                cli_model *other, gumbel_error *error) {
    if (!arguments->perplexity.against)
        return GUMBEL_OK;
    cli_model_options options = arguments->model;
    options.source = (cli_program_options){.path = arguments->perplexity.against};
    gumbel_status status = cli_model_open(&options, false, other, error);
    if (status != GUMBEL_OK || other->info.vocab_size == model->info.vocab_size)
        return status;
    cli_refuse(error, "%s: a vocabulary of %u tokens, expected %u as in %s", options.source.path,
               other->info.vocab_size, model->info.vocab_size, arguments->model.source.path);
    return error->status = GUMBEL_ERROR_ARGUMENT;
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
    cli_model model = {0}, other = {0};
    scoring s = {0};
    cli_scores scores = {0};
    gumbel_error error;
    gumbel_status status = cli_model_open(&arguments->model, false, &model, &error);
    if (status == GUMBEL_OK)
        status = open_other(arguments, &model, &other, &error);
    if (status == GUMBEL_OK)
        status = begin_scoring(&model, &other, arguments, &s, &error);
    cli_progress progress;
    cli_progress_begin(&progress, false);
    if (status == GUMBEL_OK)
        status = score_text(&model, &other, &s, &progress, &scores, &error);
    cli_progress_erase(&progress);
    if (status == GUMBEL_OK)
        print_scores(arguments, &model, &other, &scores);
    cli_tokens_free(&s.tokens);
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
        "each predicted from those before it. A text longer than the context is cut into windows.",
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
