/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/sampling.h"

#include "cli/base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const cli_option cli_sampling_table[] = {
    {.names = "--temperature --temp",
     .argument = "T",
     .help = "0 takes the likeliest token each time; higher values vary more. Built in: 0.8.",
     .type = CLI_NUMBER,
     .range = {.low = 1e-4, .high = 1e4, .has_also = true, .also_value = 0},
     .offset = offsetof(cli_sampling_options, temperature)},
    {.names = "--top-k",
     .argument = "K",
     .help = "Draw among the K likeliest tokens; 0 or -1: among all. Built in: 0.",
     .type = CLI_INTEGER,
     .range = {.low = -1, .high = INT32_MAX},
     .offset = offsetof(cli_sampling_options, top_k)},
    {.names = "--top-p",
     .argument = "P",
     .help = "Draw among the likeliest tokens that together have probability P; 1: among all. Built in: 1.",
     .type = CLI_NUMBER,
     .range = {.low = 0, .high = 1, .low_excluded = true},
     .offset = offsetof(cli_sampling_options, top_p)},
    {.names = "--min-p",
     .argument = "P",
     .help =
         "Draw among the tokens that are at least P times as likely as the likeliest; 0: among all. Built "
         "in: 0.",
     .type = CLI_NUMBER,
     .range = {.low = 0, .high = 1},
     .offset = offsetof(cli_sampling_options, min_p)},
    {.names = "--presence-penalty",
     .argument = "P",
     .help = "Subtract P from the logits of tokens that were generated. Built in: 0.",
     .type = CLI_NUMBER,
     .range = {.low = -2, .high = 2},
     .offset = offsetof(cli_sampling_options, presence_penalty)},
    {.names = "--frequency-penalty",
     .argument = "P",
     .help = "Subtract P for each time that a token was generated. Built in: 0.",
     .type = CLI_NUMBER,
     .range = {.low = -2, .high = 2},
     .offset = offsetof(cli_sampling_options, frequency_penalty)},
    {.names = "--repeat-penalty --repetition-penalty",
     .argument = "R",
     .help = "Divide the logits of tokens of the prompt or the answer by R where they are above 0, multiply "
             "the others by it; 1: leave them. Built in: 1.",
     .type = CLI_NUMBER,
     .range = {.low = 0.01, .high = 100},
     .offset = offsetof(cli_sampling_options, repetition_penalty)},
    {.names = "--penalize",
     .argument = "TOKENS",
     .help = "Which tokens the three penalties count: usual (repetition those of prompt and answer, the "
             "others those of the answer), generated (those of the answer) or all (both).",
     .type = CLI_CHOICE,
     .choices = "usual generated all",
     .offset = offsetof(cli_sampling_options, penalize)},
    {.names = "-l --logit-bias",
     .argument = "ID=VALUE",
     .help = "Add VALUE to the logit of the token with that id; -inf bans it. May be given many times, or "
             "with several pairs separated by commas.",
     .type = CLI_BIASES,
     .offset = offsetof(cli_sampling_options, bias)},
    {.names = "-s --seed",
     .argument = "S",
     .help =
         "The same program, prompt, settings and seed give the same tokens. -1, the default, draws a seed "
         "and reports it.",
     .type = CLI_SEED,
     .offset = offsetof(cli_sampling_options, seed)},
    {0},
};

/* A program that ends in its logits is sampled on the host by temperature alone. */
static gumbel_status settle_without_sampler(const cli_sampling_options *options, cli_sampling *sampling,
                                            gumbel_error *error) {
    const struct {
        const char *name;
        bool given;
    } flags[] = {
        {"--top-k", options->top_k.given},
        {"--top-p", options->top_p.given},
        {"--min-p", options->min_p.given},
        {"--presence-penalty", options->presence_penalty.given},
        {"--frequency-penalty", options->frequency_penalty.given},
        {"--repeat-penalty", options->repetition_penalty.given},
        {"--logit-bias", options->bias.count > 0},
        {"--seed", options->seed.given && !options->seed.draw},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!flags[i].given)
            continue;
        cli_refuse(error,
                   "%s: the program was exported with --logits and has no sampler; only --temperature "
                   "applies to it",
                   flags[i].name);
        return error->status;
    }
    sampling->values.top_k = 0;
    sampling->values.top_p = 1;
    sampling->top_k_origin = sampling->top_p_origin = "default";
    return GUMBEL_OK;
}

static const char *origin_name(gumbel_origin origin) {
    return origin == GUMBEL_ORIGIN_PROGRAM ? "program" : "default";
}

const char *cli_given_origin(bool given, bool from_environment) {
    return !given ? "default" : from_environment ? "environment" : "flag";
}

static void apply_number(const cli_number *option, float *value, const char **origin) {
    if (!option->given)
        return;
    *value = (float)option->value;
    *origin = cli_given_origin(true, option->from_environment);
}

static gumbel_penalized penalized(const char *choice) {
    return !choice || strcmp(choice, "usual") == 0 ? GUMBEL_PENALIZED_USUAL
           : strcmp(choice, "generated") == 0      ? GUMBEL_PENALIZED_GENERATED
                                                   : GUMBEL_PENALIZED_ALL;
}

static void apply_flags(const cli_sampling_options *options, cli_sampling *sampling) {
    gumbel_sampling *values = &sampling->values;
    apply_number(&options->temperature, &values->temperature, &sampling->temperature_origin);
    apply_number(&options->top_p, &values->top_p, &sampling->top_p_origin);
    apply_number(&options->min_p, &values->min_p, &sampling->min_p_origin);
    apply_number(&options->presence_penalty, &values->presence_penalty, &sampling->presence_origin);
    apply_number(&options->frequency_penalty, &values->frequency_penalty, &sampling->frequency_origin);
    apply_number(&options->repetition_penalty, &values->repetition_penalty, &sampling->repetition_origin);
    if (options->top_k.given) {
        values->top_k = (int32_t)options->top_k.value;
        sampling->top_k_origin = cli_given_origin(true, options->top_k.from_environment);
    }
    values->penalized = penalized(options->penalize);
    values->bias = options->bias.list;
    values->bias_count = options->bias.count;
}

gumbel_status cli_settle_sampling(const cli_sampling_options *options, const cli_model *model,
                                  cli_sampling *sampling, gumbel_error *error) {
    gumbel_sampling_origin origin;
    *sampling = (cli_sampling){.values = {.size = sizeof sampling->values}};
    gumbel_sampling_defaults(model->program, &sampling->values, &origin);
    sampling->temperature_origin = origin_name(origin.temperature);
    sampling->top_k_origin = origin_name(origin.top_k);
    sampling->top_p_origin = origin_name(origin.top_p);
    sampling->min_p_origin = origin_name(origin.min_p);
    sampling->presence_origin = origin_name(origin.presence_penalty);
    sampling->frequency_origin = origin_name(origin.frequency_penalty);
    sampling->repetition_origin = origin_name(origin.repetition_penalty);
    if (!model->info.use_sampling) {
        gumbel_status status = settle_without_sampler(options, sampling, error);
        if (status != GUMBEL_OK)
            return status;
    }
    apply_flags(options, sampling);
    return GUMBEL_OK;
}

gumbel_status cli_settle_seed(const cli_sampling_options *options, cli_sampling *sampling,
                              gumbel_error *error) {
    sampling->seed = options->seed.value;
    sampling->seed_origin = cli_given_origin(true, options->seed.from_environment);
    if (options->seed.given && !options->seed.draw)
        return GUMBEL_OK;
    sampling->seed_origin = "drawn";
    if (getentropy(&sampling->seed, sizeof sampling->seed) == 0)
        return GUMBEL_OK;
    cli_refuse(error, "drawing a seed from the system: %s", strerror(errno));
    return error->status = GUMBEL_ERROR_IO;
}

void cli_report_seed(const cli_sampling *sampling) {
    if (sampling->values.temperature > 0 && strcmp(sampling->seed_origin, "drawn") == 0)
        cli_note("seed %" PRIu64 " (drawn)", sampling->seed);
}

size_t cli_list_settings(const cli_sampling *sampling, cli_setting settings[CLI_SETTINGS]) {
    const gumbel_sampling *values = &sampling->values;
    const cli_setting all[CLI_SETTINGS] = {
        {"temperature", "temperature", cli_decimal(values->temperature), false, sampling->temperature_origin},
        {"top-k", "top_k", values->top_k, true, sampling->top_k_origin},
        {"top-p", "top_p", cli_decimal(values->top_p), false, sampling->top_p_origin},
        {"min-p", "min_p", cli_decimal(values->min_p), false, sampling->min_p_origin},
        {"presence-penalty", "presence_penalty", cli_decimal(values->presence_penalty), false,
         sampling->presence_origin},
        {"frequency-penalty", "frequency_penalty", cli_decimal(values->frequency_penalty), false,
         sampling->frequency_origin},
        {"repeat-penalty", "repetition_penalty", cli_decimal(values->repetition_penalty), false,
         sampling->repetition_origin},
    };
    memcpy(settings, all, sizeof all);
    return CLI_SETTINGS;
}

void cli_print_sampling(const cli_sampling *sampling, FILE *file) {
    cli_setting settings[CLI_SETTINGS];
    size_t count = cli_list_settings(sampling, settings);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%-16s %.10g (%s)\n", settings[i].flag, settings[i].value, settings[i].origin);
    if (sampling->values.bias_count > 0)
        fprintf(file, "logit-bias       %zu tokens (flag)\n", sampling->values.bias_count);
    if (sampling->values.temperature > 0)
        fprintf(file, "seed             %" PRIu64 " (%s)\n", sampling->seed, sampling->seed_origin);
    else
        fprintf(file, "seed             not used (greedy)\n");
}
