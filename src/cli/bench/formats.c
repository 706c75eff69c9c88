/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/formats.h"

#include "cli/base/json.h"
#include "cli/bench/json.h"

#include <inttypes.h>
#include <string.h>

/* ---- A table for people -------------------------------------------------------------------------------- */

static void add_table(const cli_bench_results *results, bool is_first, FILE *file) {
    if (!is_first)
        fputc('\n', file);
    cli_bench_print_table(results, file);
}

/* ---- Markdown ------------------------------------------------------------------------------------------ */

static void begin_markdown(FILE *file) {
    fputs("| program | weights | backend | threads | test | tokens/s | ms, or ms a step | limit |\n"
          "|:--|--:|:--|--:|:--|--:|--:|:--|\n",
          file);
}

/* Text in a cell: what would end it, or is no character to see, is replaced. */
static void print_cell(FILE *file, const char *text) {
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f || *text == '|' ? ' ' : *text, file);
}

static void print_size(FILE *file, uint64_t bytes) {
    if (bytes < 1000000000)
        fprintf(file, "%.1f MB", (double)bytes / 1e6);
    else
        fprintf(file, "%.2f GB", (double)bytes / 1e9);
}

static void add_markdown_row(const cli_bench_results *results, const cli_bench_test *test, FILE *file) {
    const cli_model *model = &results->bench->model;
    gumbel_engine_info engine = {.size = sizeof engine};
    gumbel_engine_get_info(model->engine, &engine, NULL); /* it cannot fail */
    const char *slash = strrchr(results->program, '/'), *limit;
    char name[CLI_BENCH_NAME];
    double fraction = cli_bench_fraction(test, &limit);
    fputs("| ", file);
    print_cell(file, slash ? slash + 1 : results->program);
    fputs(" | ", file);
    print_size(file, model->info.weight_bytes);
    fprintf(file, " | %s | ", engine.backend);
    if (engine.threads > 0)
        fprintf(file, "%" PRIu32, engine.threads);
    fprintf(file, " | %s | %.2f ± %.2f | %.2f ± %.2f |", cli_bench_name(test, name), test->rate.mean,
            cli_average_deviation(&test->rate), cli_bench_milliseconds(test, false),
            cli_bench_milliseconds(test, true));
    if (fraction > 0)
        fprintf(file, " %.1f %% of %s", 100 * fraction, limit);
    fputs(" |\n", file);
}

static void add_markdown(const cli_bench_results *results, bool is_first, FILE *file) {
    (void)is_first;
    for (size_t i = 0; i < results->test_count; i++)
        add_markdown_row(results, &results->tests[i], file);
}

/* ---- Records ------------------------------------------------------------------------------------------- */

static void add_lines(const cli_bench_results *results, bool is_first, FILE *file) {
    (void)is_first;
    for (size_t i = 0; i < results->test_count; i++) {
        json_t *record = cli_bench_record(results, i);
        cli_json_print(record, JSON_COMPACT | JSON_REAL_PRECISION(6), file);
        fputc('\n', file);
        json_decref(record);
    }
}

/* In quotes, as RFC 4180 has them; what is no character to see becomes a blank. */
static void print_csv_text(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, file);
    }
    fputc('"', file);
}

static void print_csv_value(FILE *file, const json_t *value) {
    if (json_is_string(value))
        print_csv_text(file, json_string_value(value));
    else if (json_is_number(value))
        cli_json_print(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6), file);
}

/* Lists, which have no place in a table, are left out. */
static void print_csv_line(FILE *file, json_t *record, bool is_header) {
    const char *key, *separator = "";
    json_t *value;
    json_object_foreach(record, key, value) {
        if (json_is_array(value))
            continue;
        fputs(separator, file);
        if (is_header)
            print_csv_text(file, key);
        else
            print_csv_value(file, value);
        separator = ",";
    }
    fputc('\n', file);
}

static void add_csv(const cli_bench_results *results, bool is_first, FILE *file) {
    for (size_t i = 0; i < results->test_count; i++) {
        json_t *record = cli_bench_record(results, i);
        if (is_first && i == 0)
            print_csv_line(file, record, true);
        print_csv_line(file, record, false);
        json_decref(record);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void begin_json(FILE *file) {
    fputs("[\n", file);
}

static void add_json(const cli_bench_results *results, bool is_first, FILE *file) {
    json_t *object = cli_bench_json(results);
    if (!is_first)
        fputs(",\n", file);
    cli_json_print(object, JSON_INDENT(2) | JSON_REAL_PRECISION(6), file);
    json_decref(object);
}

static void end_json(FILE *file) {
    fputs("\n]\n", file);
}

static const cli_bench_format formats[] = {
    {"table", NULL, add_table, NULL},
    {"md", begin_markdown, add_markdown, NULL},
    {"csv", NULL, add_csv, NULL},
    {"jsonl", NULL, add_lines, NULL},
    {"json", begin_json, add_json, end_json},
};

const cli_bench_format *cli_bench_find_format(const char *name) {
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return &formats[0];
}
