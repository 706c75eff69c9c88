/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel perplexity: how well a program predicts a text, and how far its predictions are from another's.
 */
#include "cli/average.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/report.h"

#include <math.h>
#include <string.h>

typedef struct perplexity_options {
    const char *file, *against;
    cli_integer count;
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
             "also print the "
             "mean Kullback-Leibler divergence from it, and how often both find the same token most likely.",
     .type = CLI_STRING,
     .offset = offsetof(perplexity_options, against)},
    {.names = "-n --max-tokens",
     .argument = "N",
     .help = "Score the text's first N tokens only; 0, the default: all.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX},
     .offset = offsetof(perplexity_options, count)},
    {0},
};

/* ---- Distributions ------------------------------------------------------------------------------------- */

/* log of the sum of exp(logits), and where the largest is. */
static double log_sum(const float *logits, uint32_t count, uint32_t *best) {
    *best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[*best])
            *best = i;
    double largest = (double)logits[*best], sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

typedef struct scores {
    cli_average surprise; /* -log p of each token */
    cli_average divergence;
    double agreed;
} scores;

/* Adds the prediction of a token by a program and, unless reference is NULL, by the other. */
static void score(scores *s, const float *logits, const float *reference, uint32_t count, int32_t token) {
    uint32_t best, reference_best;
    double sum = log_sum(logits, count, &best);
    cli_average_add(&s->surprise, sum - (double)logits[token]);
    if (!reference)
        return;
    double reference_sum = log_sum(reference, count, &reference_best), divergence = 0;
    for (uint32_t i = 0; i < count; i++) {
        double p = (double)reference[i] - reference_sum, q = (double)logits[i] - sum;
        if (p > -100)
            divergence += exp(p) * (p - q);
    }
    cli_average_add(&s->divergence, divergence);
    s->agreed += best == reference_best;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

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

/* A text longer than the context is cut into windows. Each begins with the text's first token, which is where
 * models expect their bos; the token after a window's beginning is the first one that it scores. */
static gumbel_status score_text(const cli_model *model, const cli_model *other, const cli_tokens *tokens,
                                cli_progress *progress, scores *s, gumbel_error *error) {
    uint32_t window = model->max_context, position = 0;
    if (other->program && other->max_context < window)
        window = other->max_context;
    for (size_t i = 0; i + 1 < tokens->count; i++) {
        const float *row = NULL, *reference = NULL;
        if (position == window) {
            gumbel_session_reset(model->session);
            if (other->program)
                gumbel_session_reset(other->session);
            position = 0;
        }
        int32_t token = position == 0 ? tokens->ids[0] : tokens->ids[i];
        gumbel_status status = run_token(model, token, &row, error);
        if (status == GUMBEL_OK && other->program)
            status = run_token(other, token, &reference, error);
        if (status != GUMBEL_OK)
            return status;
        score(s, row, reference, model->info.vocab_size, tokens->ids[i + 1]);
        position++;
        cli_progress_count(progress, "tokens", i + 1, tokens->count - 1);
    }
    return GUMBEL_OK;
}

static const gumbel_encode_options encode_options = {.size = sizeof encode_options, .add_special = true};

/* Two vocabularies of one size may still be different ones; an other without a tokenizer is believed. */
static gumbel_status check_same_tokens(const cli_model *other, const char *against, const cli_text *text,
                                       const cli_tokens *tokens, gumbel_error *error) {
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
    cli_refuse(error, "%s: its tokenizer gives other tokens for the text than the program's", against);
    return error->status = GUMBEL_ERROR_ARGUMENT;
}

static gumbel_status read_tokens(const cli_model *model, const cli_model *other,
                                 const perplexity_options *options, cli_tokens *tokens, gumbel_error *error) {
    cli_text text = {0};
    gumbel_status status = cli_read_file(options->file, &text, error);
    if (status == GUMBEL_OK && !model->tokenizer) {
        cli_refuse(error, "the program has no tokenizer");
        status = GUMBEL_ERROR_ARGUMENT;
    }
    if (status == GUMBEL_OK)
        status = cli_encode_text(model->tokenizer, text.bytes, text.length, &encode_options, tokens, error);
    if (status == GUMBEL_OK)
        status = check_same_tokens(other, options->against, &text, tokens, error);
    cli_text_free(&text);
    if (status == GUMBEL_OK && options->count.value > 0 && tokens->count > (size_t)options->count.value)
        tokens->count = (size_t)options->count.value;
    if (status == GUMBEL_OK && tokens->count < 2) {
        cli_refuse(error, "%s: %zu tokens, expected 2 or more", options->file, tokens->count);
        status = GUMBEL_ERROR_ARGUMENT;
    }
    return status;
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
    cli_refuse(error, "%s: a vocabulary of %u, expected %u as in the program", options.source.path,
               (unsigned)other->info.vocab_size, (unsigned)model->info.vocab_size);
    return GUMBEL_ERROR_ARGUMENT;
}

static void print_scores(const scores *s) {
    double perplexity = exp(s->surprise.mean);
    printf("tokens          %.0f\n", s->surprise.count);
    printf("perplexity      %.4f +- %.4f\n", perplexity, perplexity * cli_average_error(&s->surprise));
    if (s->divergence.count == 0)
        return;
    printf("kl divergence   %.6f +- %.6f\n", s->divergence.mean, cli_average_error(&s->divergence));
    printf("top-1 agreement %.2f %%\n", 100 * s->agreed / s->divergence.count);
}

static int perplexity(void *given) {
    const perplexity_arguments *arguments = given;
    if (!arguments->perplexity.file)
        return cli_fail_usage("perplexity needs -f FILE, the text");
    cli_model model = {0}, other = {0};
    cli_tokens tokens = {0};
    scores s = {0};
    gumbel_error error;
    gumbel_status status = cli_model_open(&arguments->model, false, &model, &error);
    if (status == GUMBEL_OK)
        status = open_other(arguments, &model, &other, &error);
    if (status == GUMBEL_OK)
        status = read_tokens(&model, &other, &arguments->perplexity, &tokens, &error);
    cli_progress progress;
    cli_progress_begin(&progress, false);
    if (status == GUMBEL_OK)
        status = score_text(&model, &other, &tokens, &progress, &s, &error);
    cli_progress_erase(&progress);
    if (status == GUMBEL_OK)
        print_scores(&s);
    cli_tokens_free(&tokens);
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
