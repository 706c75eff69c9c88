/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/sampling.h"

#include "base/portable.h"
#include "base/status.h"
#include "cli/base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- Flags --------------------------------------------------------------------------------------------- */

/* Fields of gumbel_sampling that are no numbers, and the seed. */
static const cli_option other_options[] = {
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
};

enum { OTHER_OPTIONS = sizeof other_options / sizeof *other_options, NAMES = 160, HELP = 512 };

cli_option cli_sampling_table[CLI_MOST_SETTINGS + OTHER_OPTIONS + 1];

const char *cli_setting_name(const gumbel_setting *setting, char text[CLI_SETTING_NAME]) {
    snprintf(text, CLI_SETTING_NAME, "%s", setting->name);
    for (char *letter = text; *letter; letter++)
        *letter = *letter == '_' ? '-' : *letter;
    return text;
}

/* "--repetition-penalty --repeat-penalty": the setting's name and its aliases. */
static void write_names(const gumbel_setting *setting, char names[NAMES]) {
    int used = snprintf(names, NAMES, "--%s", setting->name);
    const char *aliases = setting->aliases ? setting->aliases : "", *alias;
    for (size_t length; (length = cli_next_name(&aliases, &alias)) > 0 && used < NAMES;)
        used += snprintf(names + used, (size_t)(NAMES - used), " --%.*s", (int)length, alias);
    for (char *letter = names; *letter; letter++)
        *letter = *letter == '_' ? '-' : *letter;
}

static cli_option option_of(const gumbel_setting *setting, size_t index) {
    static char names[CLI_MOST_SETTINGS][NAMES], help[CLI_MOST_SETTINGS][HELP];
    write_names(setting, names[index]);
    snprintf(help[index], HELP, "%s Built in: %g.", setting->help, setting->built_in);
    return (cli_option){.names = names[index],
                        .argument = setting->argument,
                        .help = help[index],
                        .type = setting->type == GUMBEL_SETTING_INT32 ? CLI_INTEGER : CLI_NUMBER,
                        .range = {.low = setting->low,
                                  .high = setting->high,
                                  .low_excluded = setting->low_excluded,
                                  .has_also = setting->zero_allowed},
                        .offset = offsetof(cli_sampling_options, settings) + index * sizeof(cli_setting)};
}

/* The commands' tables are constants that point to this one. */
__attribute__((constructor)) static void fill_table(void) {
    const gumbel_setting *setting;
    size_t count = 0;
    for (; count < CLI_MOST_SETTINGS && (setting = gumbel_setting_at(count)); count++)
        cli_sampling_table[count] = option_of(setting, count);
    memcpy(cli_sampling_table + count, other_options, sizeof other_options);
}

/* The origin of the flag's number; NULL where it was not given. */
static const char *given_value(const cli_sampling_options *options, size_t index, double *value) {
    const cli_setting *given = &options->settings[index];
    const bool is_integer = gumbel_setting_at(index)->type == GUMBEL_SETTING_INT32;
    *value = is_integer ? (double)given->integer.value : given->number.value;
    if (!(is_integer ? given->integer.given : given->number.given))
        return NULL;
    return cli_given_origin(true,
                            is_integer ? given->integer.from_environment : given->number.from_environment);
}

/* ---- Settling ------------------------------------------------------------------------------------------ */

static gumbel_status refuse_without_sampler(const char *flag, gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "--%s: the program was exported with --logits and has no sampler; only --temperature "
                   "applies to it",
                   flag);
}

/* A program that ends in its logits is sampled on the host by temperature alone. */
static gumbel_status settle_without_sampler(const cli_sampling_options *options, cli_sampling *sampling,
                                            gumbel_error *error) {
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++) {
        double value;
        char name[CLI_SETTING_NAME];
        if (strcmp(setting->name, "temperature") == 0)
            continue;
        if (given_value(options, i, &value))
            return refuse_without_sampler(cli_setting_name(setting, name), error);
        sampling->origins[i] = "default";
        gumbel_status status = gumbel_setting_set(setting, setting->neutral, &sampling->values, error);
        if (status != GUMBEL_OK)
            return status;
    }
    if (options->bias.count > 0)
        return refuse_without_sampler("logit-bias", error);
    if (options->seed.given && !options->seed.draw)
        return refuse_without_sampler("seed", error);
    return GUMBEL_OK;
}

const char *cli_given_origin(bool given, bool from_environment) {
    return !given ? "default" : from_environment ? "environment" : "flag";
}

static gumbel_penalized penalized(const char *choice) {
    return !choice || strcmp(choice, "usual") == 0 ? GUMBEL_PENALIZED_USUAL
           : strcmp(choice, "generated") == 0      ? GUMBEL_PENALIZED_GENERATED
                                                   : GUMBEL_PENALIZED_ALL;
}

static gumbel_status apply_flags(const cli_sampling_options *options, cli_sampling *sampling,
                                 gumbel_error *error) {
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++) {
        double value;
        const char *origin = given_value(options, i, &value);
        if (!origin)
            continue;
        sampling->origins[i] = origin;
        gumbel_status status = gumbel_setting_set(setting, value, &sampling->values, error);
        if (status != GUMBEL_OK)
            return status;
    }
    sampling->values.penalized = penalized(options->penalize);
    sampling->values.bias = options->bias.list;
    sampling->values.bias_count = options->bias.count;
    return GUMBEL_OK;
}

gumbel_status cli_settle_sampling(const cli_sampling_options *options, const cli_model *model,
                                  cli_sampling *sampling, gumbel_error *error) {
    *sampling = (cli_sampling){.values = {.size = sizeof sampling->values}};
    gumbel_status status = gumbel_sampling_defaults(model->program, &sampling->values, error);
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
        sampling->origins[i] = gumbel_setting_is_recommended(setting, model->program) ? "program" : "default";
    if (status == GUMBEL_OK && !model->info.use_sampling)
        status = settle_without_sampler(options, sampling, error);
    return status == GUMBEL_OK ? apply_flags(options, sampling, error) : status;
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
    return gb_fail_errno(error, errno, "drawing a seed from the system");
}

void cli_report_seed(const cli_sampling *sampling) {
    if (sampling->values.temperature > 0 && strcmp(sampling->seed_origin, "drawn") == 0)
        cli_note("seed %" PRIu64 " (drawn)", sampling->seed);
}

double cli_setting_value(const gumbel_setting *setting, const cli_sampling *sampling) {
    const double value = gumbel_setting_get(setting, &sampling->values);
    return setting->type == GUMBEL_SETTING_INT32 ? value : cli_decimal((float)value);
}

void cli_print_sampling(const cli_sampling *sampling, FILE *file) {
    const gumbel_setting *setting;
    char name[CLI_SETTING_NAME];
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
        fprintf(file, "%-16s %.10g (%s)\n", cli_setting_name(setting, name),
                cli_setting_value(setting, sampling), sampling->origins[i]);
    if (sampling->values.bias_count > 0)
        fprintf(file, "logit-bias       %zu tokens (flag)\n", sampling->values.bias_count);
    if (sampling->values.temperature > 0)
        fprintf(file, "seed             %" PRIu64 " (%s)\n", sampling->seed, sampling->seed_origin);
    else
        fprintf(file, "seed             not used (greedy)\n");
}
