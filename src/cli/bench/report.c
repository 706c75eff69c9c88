/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/report.h"

#include "cli/base/report.h"

#include <inttypes.h>

const char *cli_bench_name(const cli_bench_test *test, char text[CLI_BENCH_NAME]) {
    int used;
    switch (test->kind) {
    case CLI_BENCH_PROMPT:
        snprintf(text, CLI_BENCH_NAME, "prompt %u", test->prompt);
        break;
    case CLI_BENCH_DECODE:
        used = snprintf(text, CLI_BENCH_NAME, "decode %u at %u", test->tokens, test->depth);
        if (test->batch > 1)
            used += snprintf(text + used, CLI_BENCH_NAME - (size_t)used, ", %u sequences", test->batch);
        if (test->rows > 1)
            snprintf(text + used, CLI_BENCH_NAME - (size_t)used, ", %u rows", test->rows);
        break;
    case CLI_BENCH_DRAFTED:
        snprintf(text, CLI_BENCH_NAME, "drafts of up to %u at %u, %u %%", test->rows - 1, test->depth,
                 test->acceptance);
        break;
    default:
        snprintf(text, CLI_BENCH_NAME, "answer %u + %u", test->prompt, test->tokens);
        break;
    }
    return text;
}

double cli_bench_fraction(const cli_bench_test *test, const char **limit) {
    double reading = 0, multiplying = 0;
    if (test->read_rate.count > 0 && test->read_rate.mean > 0)
        reading = test->read_bytes / test->read_rate.mean;
    if (test->int8_rate.count > 0 && test->int8_rate.mean > 0)
        multiplying = test->int8_products / test->int8_rate.mean;
    double least = reading > multiplying ? reading : multiplying;
    *limit = least <= 0 ? "" : reading > multiplying ? "read bandwidth" : "int8 peak";
    return test->seconds.mean > 0 ? least / test->seconds.mean : 0;
}

static void print_scattered(FILE *file, const char *name, const cli_average *average, double scale,
                            const char *unit) {
    fprintf(file, "%-21s%.*f +- %.*f %s\n", name, 1, average->mean * scale, 1,
            cli_average_deviation(average) * scale, unit);
}

/* All but what is neutral. */
static void print_sampling(const cli_sampling *sampling, FILE *file) {
    const gumbel_sampling *values = &sampling->values;
    fprintf(file, "%-21s", "sampling");
    if (values->temperature > 0)
        fprintf(file, "seed %" PRIu64, sampling->seed);
    else
        fprintf(file, "greedy");
    const gumbel_setting *setting;
    char name[CLI_SETTING_NAME];
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
        if (gumbel_setting_get(setting, values) != setting->neutral)
            fprintf(file, ", %s %g", cli_setting_name(setting, name), gumbel_setting_get(setting, values));
    if (values->bias_count > 0)
        fprintf(file, ", biases %zu", values->bias_count);
    fprintf(file, "\n");
}

static void print_head(const cli_bench_results *r, FILE *file) {
    const gumbel_program_info *info = &r->bench->model.info;
    fprintf(file, "%-21s", "program");
    cli_print_escaped(file, r->program);
    fputs(" (", file);
    cli_print_escaped(file, info->architecture);
    fputs(")\n", file);
    fprintf(file, "%-21s%.1f MB\n", "weights", (double)info->weight_bytes / 1e6);
    fprintf(file, "%-21s%s\n", "engine", gumbel_engine_description(r->bench->model.engine));
    print_sampling(&r->bench->sampling, file);
    if (r->read_rate.count > 0)
        print_scattered(file, "read bandwidth", &r->read_rate, 1e-9, "GB/s");
    if (r->int8_rate.count > 0)
        print_scattered(file, "int8 peak", &r->int8_rate, 1e-9, "G products/s");
    print_scattered(file, "load", &r->load_seconds, 1e3, "ms");
    print_scattered(file, "load and first token", &r->first_token_seconds, 1e3, "ms");
    fprintf(file, "%-21s%.1f ms\n", "  the first time", r->cold_first_token_seconds * 1e3);
    fprintf(file, "%-21s%.1f MB\n", "peak memory", r->peak_megabytes);
}

double cli_bench_milliseconds(const cli_bench_test *test, bool deviation) {
    const double steps = test->kind == CLI_BENCH_DECODE ? test->tokens : 1;
    const cli_average *seconds = test->kind == CLI_BENCH_DRAFTED ? &test->step_seconds : &test->seconds;
    return 1e3 * (deviation ? cli_average_deviation(seconds) : seconds->mean) / steps;
}

static void print_test(const cli_bench_test *test, FILE *file) {
    char name[CLI_BENCH_NAME];
    const char *limit;
    double fraction = cli_bench_fraction(test, &limit);
    fprintf(file, "%-30s %9.2f +- %-7.2f %10.2f +- %-7.2f", cli_bench_name(test, name), test->rate.mean,
            cli_average_deviation(&test->rate), cli_bench_milliseconds(test, false),
            cli_bench_milliseconds(test, true));
    if (fraction > 0)
        fprintf(file, " %5.1f %% of %s", 100 * fraction, limit);
    if (test->kind == CLI_BENCH_DRAFTED)
        fprintf(file, " %.0f of %.0f guesses in %.0f drafts", test->accepted.mean, test->guesses.mean,
                test->drafts.mean);
    fprintf(file, "\n");
    if (test->decode_rate.count > 0)
        fprintf(file, "%-30s %9.2f +- %-7.2f\n", "  after the first token", test->decode_rate.mean,
                cli_average_deviation(&test->decode_rate));
}

static void print_profile(const cli_bench_test *test, const cli_profile *profile, FILE *file) {
    char name[CLI_BENCH_NAME];
    double steps = test->tokens > 0 ? test->tokens : 1, sum = cli_profile_seconds(profile);
    fprintf(file, "\n%-45s %10s %7s %8s\n", cli_bench_name(test, name),
            test->kind == CLI_BENCH_PROMPT ? "ms" : "ms a step", "%", "calls");
    for (size_t i = 0; i < profile->count; i++) {
        const cli_profile_entry *entry = &profile->entries[i];
        fprintf(file, "%-45s %10.3f %7.1f %8.0f\n", entry->name, 1e3 * entry->seconds / steps,
                100 * entry->seconds / sum, entry->calls / steps);
    }
    fprintf(file, "%-45s %10.3f\n", "all ops", 1e3 * sum / steps);
}

void cli_bench_print_table(const cli_bench_results *r, FILE *file) {
    print_head(r, file);
    if (r->test_count > 0)
        fprintf(file, "\n%-30s %20s %21s\n", "", "tokens/s", "ms, or ms a step");
    for (size_t i = 0; i < r->test_count; i++)
        print_test(&r->tests[i], file);
    for (size_t i = 0; r->profiles && i < r->test_count; i++)
        if (r->profiles[i].count > 0)
            print_profile(&r->tests[i], &r->profiles[i], file);
}
