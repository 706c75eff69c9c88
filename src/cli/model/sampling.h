/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that tokens are drawn with: flags over what the program recommends over what is built in.
 */
#ifndef GUMBEL_CLI_MODEL_SAMPLING_H
#define GUMBEL_CLI_MODEL_SAMPLING_H

#include "cli/model/model.h"

#include <stdio.h>

/* The library's list of settings is shorter. */
enum { CLI_MOST_SETTINGS = 32, CLI_SETTING_NAME = 40 };

/* A flag of the list, as its type says. */
typedef union cli_setting {
    cli_number number;
    cli_integer integer;
} cli_setting;

typedef struct cli_sampling_options {
    cli_setting settings[CLI_MOST_SETTINGS]; /* in the order of gumbel_setting_at */
    cli_seed seed;
    const char *penalize; /* NULL: as usual */
    cli_biases bias;
} cli_sampling_options;

/* The flags of the library's list and of the other fields of gumbel_sampling. Filled in before main. */
extern cli_option cli_sampling_table[];

/* The settings in use, each with where it came from: "flag", "environment", "program", "default", "drawn".
 * The biases are those of the options, which must outlive it. */
typedef struct cli_sampling {
    gumbel_sampling values;
    const char *origins[CLI_MOST_SETTINGS]; /* as above */
    uint64_t seed;
    const char *seed_origin;
} cli_sampling;

/* The setting's name as flags have it, "min-p"; returns text. */
const char *cli_setting_name(const gumbel_setting *setting, char text[CLI_SETTING_NAME]);

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

/* A setting's value for reports: the shortest decimal of a float, an integer as it is. */
double cli_setting_value(const gumbel_setting *setting, const cli_sampling *sampling);

/* One line for each setting: its name, value and origin. */
void cli_print_sampling(const cli_sampling *sampling, FILE *file);

#endif
