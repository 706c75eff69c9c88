/* SPDX-License-Identifier: Apache-2.0
 *
 * The measurements of `gumbel bench`: what each is, and how one repetition of it is run.
 */
#ifndef GUMBEL_CLI_BENCH_MEASURE_H
#define GUMBEL_CLI_BENCH_MEASURE_H

#include "cli/base/average.h"
#include "cli/model/sampling.h"

typedef enum cli_bench_kind {
    CLI_BENCH_PROMPT, /* a prompt up to its first token */
    CLI_BENCH_DECODE, /* steps of one generated token for each of some sequences */
    CLI_BENCH_ANSWER, /* a prompt and tokens drawn after it, as gumbel run does it */
    CLI_BENCH_DRAFTED /* tokens of one sequence, with a draft model */
} cli_bench_kind;

enum { CLI_BENCH_MOST_ROWS = 64 /* of a sequence in a step */ };

typedef struct cli_bench_test {
    cli_bench_kind kind;
    uint32_t prompt;       /* PROMPT, ANSWER: its tokens */
    uint32_t tokens;       /* all but PROMPT: of each sequence */
    uint32_t depth, batch; /* DECODE, DRAFTED: positions already run (0: the first one), sequences */
    uint32_t rows;         /* DECODE, DRAFTED: of each sequence in a step */
    uint32_t acceptance;   /* DRAFTED: of 100 guesses whose turn comes */
    /* What a repetition needs at least. */
    double read_bytes, int8_products;
    /* Of each repetition. */
    cli_average seconds;
    cli_average rate;         /* all tokens of all sequences per second */
    cli_average decode_rate;  /* ANSWER: tokens after the first per second */
    cli_average step_seconds; /* DRAFTED: of a step and its guesses */
    /* DRAFTED: steps that had a draft, the tokens of all drafts, those of them that were right */
    cli_average drafts, guesses, accepted;
    /* Limits of the machine just before and just after each repetition; count 0: not known. */
    cli_average read_rate, int8_rate;
} cli_bench_test;

/* The largest tests: sequences, rows of each, positions that it comes to. */
typedef struct cli_bench_most {
    uint32_t sequences, rows, tokens;
} cli_bench_most;

/* A model with what the tests need besides its session. */
typedef struct cli_bench {
    cli_model model;
    cli_sampling sampling; /* of all tests */
    cli_tokens tokens;     /* what prompts and steps are fed with: random, the same in every run */
    uint32_t depths[CLI_MOST_INTEGERS];
    gumbel_session *bases[CLI_MOST_INTEGERS]; /* a session with one position less; NULL for none */
    size_t depth_count;
    gumbel_session **sequences; /* [most.sequences] */
    gumbel_request *requests;   /* [most.sequences] */
    gumbel_result *results;     /* [most.rows] of all sequences: nobody reads them */
    cli_bench_most most;
} cli_bench;

/* How many positions a sequence has when its decoding at a depth begins: what is decoded has a token before
 * it. */
uint32_t cli_bench_begin_depth(uint32_t depth);

/* Slots that an engine needs for tests with so many depths and sequences at most. */
int cli_bench_slots(const cli_integers *depths, uint32_t most_sequences);

/* Adds to an opened model (the rest of bench zeroed) what the tests need, of which none is larger than most,
 * and runs prompts up to each depth. Free with cli_bench_free, also after a failure. */
gumbel_status cli_bench_prepare(cli_bench *bench, const cli_integers *depths, const cli_bench_most *most,
                                gumbel_error *error);

/* Fills in what a repetition of the test needs. */
gumbel_status cli_bench_find_costs(const cli_bench *bench, cli_bench_test *test, gumbel_error *error);

/* Runs the test once and adds the times to its averages. */
gumbel_status cli_bench_run(cli_bench *bench, cli_bench_test *test, gumbel_error *error);

/* Runs a single token in a fresh session up to its successor, greedy. */
gumbel_status cli_bench_first_step(cli_model *model, gumbel_error *error);

void cli_bench_free(cli_bench *bench);

#endif
