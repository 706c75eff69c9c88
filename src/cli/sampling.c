/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sampling.h"

#include "cli/report.h"

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
    const char *refused = options->top_k.given                         ? "--top-k"
                          : options->top_p.given                       ? "--top-p"
                          : options->seed.given && !options->seed.draw ? "--seed"
                                                                       : NULL;
    if (refused) {
        cli_refuse(error,
                   "%s: the program was exported with --logits and has no sampler; only --temperature "
                   "applies to it",
                   refused);
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

static void apply_flags(const cli_sampling_options *options, cli_sampling *sampling) {
    if (options->temperature.given) {
        sampling->values.temperature = (float)options->temperature.value;
        sampling->temperature_origin = "flag";
    }
    if (options->top_k.given) {
        sampling->values.top_k = (int32_t)options->top_k.value;
        sampling->top_k_origin = "flag";
    }
    if (options->top_p.given) {
        sampling->values.top_p = (float)options->top_p.value;
        sampling->top_p_origin = "flag";
    }
}

gumbel_status cli_settle_sampling(const cli_sampling_options *options, const cli_model *model,
                                  cli_sampling *sampling, gumbel_error *error) {
    gumbel_sampling_origin origin;
    *sampling = (cli_sampling){.values = {.size = sizeof sampling->values}};
    gumbel_sampling_defaults(model->program, &sampling->values, &origin);
    sampling->temperature_origin = origin_name(origin.temperature);
    sampling->top_k_origin = origin_name(origin.top_k);
    sampling->top_p_origin = origin_name(origin.top_p);
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
    sampling->seed_origin = "flag";
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

void cli_print_sampling(const cli_sampling *sampling, FILE *file) {
    fprintf(file, "temperature      %g (%s)\n", (double)sampling->values.temperature,
            sampling->temperature_origin);
    fprintf(file, "top-k            %" PRId32 " (%s)\n", sampling->values.top_k, sampling->top_k_origin);
    fprintf(file, "top-p            %g (%s)\n", (double)sampling->values.top_p, sampling->top_p_origin);
    if (sampling->values.temperature > 0)
        fprintf(file, "seed             %" PRIu64 " (%s)\n", sampling->seed, sampling->seed_origin);
    else
        fprintf(file, "seed             not used (greedy)\n");
}
