/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that tokens are drawn with: flags over what the program recommends over what is built in.
 */
#ifndef GUMBEL_CLI_MODEL_SAMPLING_H
#define GUMBEL_CLI_MODEL_SAMPLING_H

#include "cli/model/model.h"

#include <stdio.h>

typedef struct cli_sampling_options {
    cli_number temperature;
    cli_integer top_k;
    cli_number top_p;
    cli_seed seed;
    cli_number min_p, presence_penalty, frequency_penalty, repetition_penalty;
    const char *penalize; /* NULL: as usual */
    cli_biases bias;
} cli_sampling_options;

extern const cli_option cli_sampling_table[];

/* The settings in use, each with where it came from: "flag", "environment", "program", "default", "drawn".
 * The biases are those of the options, which must outlive it. */
typedef struct cli_sampling {
    gumbel_sampling values;
    uint64_t seed;
    const char *temperature_origin, *top_k_origin, *top_p_origin, *seed_origin;
    const char *min_p_origin, *presence_origin, *frequency_origin, *repetition_origin;
} cli_sampling;

/* Settles all but the seed for a model. A program without a sampler (exported with --logits) takes a
 * temperature alone: ARGUMENT when another flag was given. */
gumbel_status cli_settle_sampling(const cli_sampling_options *options, const cli_model *model,
                                  cli_sampling *sampling, gumbel_error *error);

/* Settles the seed: the flag's, or one drawn from the system when it is unset or -1. */
gumbel_status cli_settle_seed(const cli_sampling_options *options, cli_sampling *sampling,
                              gumbel_error *error);

/* Says on standard error which seed was drawn, if it was and tokens depend on it. */
void cli_report_seed(const cli_sampling *sampling);

/* The origin of an option's value. */
const char *cli_given_origin(bool given, bool from_environment);

/* A setting for reports. */
typedef struct cli_setting {
    const char *flag; /* "repeat-penalty" */
    const char *name; /* in gumbel_sampling: "repetition_penalty" */
    double value;
    bool is_integer;
    const char *origin;
} cli_setting;

/* Those that are numbers, but for the seed. Returns how many. */
enum { CLI_SETTINGS = 7 };
size_t cli_list_settings(const cli_sampling *sampling, cli_setting settings[CLI_SETTINGS]);

/* One line for each setting: its name, value and origin. */
void cli_print_sampling(const cli_sampling *sampling, FILE *file);

#endif
