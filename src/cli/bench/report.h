/* SPDX-License-Identifier: Apache-2.0
 *
 * What `gumbel bench` has measured of a program, and its table for people.
 */
#ifndef GUMBEL_CLI_BENCH_REPORT_H
#define GUMBEL_CLI_BENCH_REPORT_H

#include "cli/bench/measure.h"
#include "cli/bench/profile.h"

#include <stdio.h>

typedef struct cli_bench_results {
    const char *program; /* its path */
    const cli_bench *bench;
    cli_bench_test *tests;
    size_t test_count;
    cli_profile *profiles;            /* [test_count] of one repetition, empty where none was made; or NULL */
    cli_average load_seconds;         /* opening program and engine */
    cli_average first_token_seconds;  /* the same and a step of one token */
    double cold_first_token_seconds;  /* the first of them, which may have read the file from disk */
    double peak_megabytes;            /* before the limits were measured */
    cli_average read_rate, int8_rate; /* limits of the machine, all there are; count 0: not known */
} cli_bench_results;

/* "prompt 256", "decode 64 at 2048, 8 sequences, 4 rows", "answer 256 + 64"; returns text. */
enum { CLI_BENCH_NAME = 64 };
const char *cli_bench_name(const cli_bench_test *test, char text[CLI_BENCH_NAME]);

/* The time that the limits allow, as a part of the time that it took, and which limit that is: "read
 * bandwidth" or "int8 peak". 0 and "" where limits are not known. */
double cli_bench_fraction(const cli_bench_test *test, const char **limit);

/* Milliseconds to the first token, or of a step; or their standard deviation. */
double cli_bench_milliseconds(const cli_bench_test *test, bool deviation);

void cli_bench_print_table(const cli_bench_results *results, FILE *file);

#endif
