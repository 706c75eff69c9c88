/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of `gumbel bench -o`. Results of programs and numbers of threads are printed one after another,
 * each as soon as it is there.
 */
#ifndef GUMBEL_CLI_BENCH_FORMATS_H
#define GUMBEL_CLI_BENCH_FORMATS_H

#include "cli/bench/report.h"

/* "table" for people, "md" a table of Markdown, "csv" and "jsonl" a record for each test, "json" an array of
 * an object for each program and number of threads. */
#define CLI_BENCH_FORMATS "table md csv jsonl json"

typedef struct cli_bench_format {
    const char *name;
    void (*begin)(FILE *file); /* NULL: nothing */
    void (*add)(const cli_bench_results *results, bool is_first, FILE *file);
    void (*end)(FILE *file); /* NULL: nothing */
} cli_bench_format;

/* The format of one of these names; NULL is the table. */
const cli_bench_format *cli_bench_find_format(const char *name);

#endif
