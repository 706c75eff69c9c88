/* SPDX-License-Identifier: Apache-2.0
 *
 * All measurements of one program with one number of threads: which there are, and their rounds.
 */
#ifndef GUMBEL_CLI_BENCH_PROGRAM_H
#define GUMBEL_CLI_BENCH_PROGRAM_H

#include "cli/bench/report.h"

/* What flags ask for; lists and numbers that are not given have defaults. */
typedef struct cli_bench_options {
    cli_integers prompts, depths, batches, rows, acceptances;
    cli_integer tokens, repetitions;
    bool profile, no_limits;
} cli_bench_options;

/* The options with their defaults, the program, and what comes of it. */
typedef struct cli_bench_program {
    cli_integers prompts, depths, batches, rows, acceptances;
    uint32_t tokens, repetitions;
    bool no_limits; /* they are not measured, and so not known */
    cli_bench bench;
    cli_bench_results results;
    cli_profile collected; /* what the engine's callback adds to */
} cli_bench_program;

/* Opens the program of the model's options and measures all tests. measured is zeroed, and must stay where it
 * is until cli_bench_program_free, which is called in any case. Errors: LIMIT and ARGUMENT where a test does
 * not fit, and those of opening and running. */
gumbel_status cli_bench_program_measure(const cli_model_options *model, const cli_sampling_options *sampling,
                                        const cli_bench_options *options, cli_bench_program *measured,
                                        gumbel_error *error);

void cli_bench_program_free(cli_bench_program *measured);

#endif
