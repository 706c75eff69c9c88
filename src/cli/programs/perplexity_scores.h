/* SPDX-License-Identifier: Apache-2.0
 *
 * What `gumbel perplexity` finds in rows of logits, adds up over the tokens of a text, and prints.
 */
#ifndef GUMBEL_CLI_PROGRAMS_PERPLEXITY_SCORES_H
#define GUMBEL_CLI_PROGRAMS_PERPLEXITY_SCORES_H

#include "cli/base/average.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The prediction of a token. The last two stay zero where there is no reference. */
typedef struct cli_prediction {
    double surprise;   /* -log p */
    double divergence; /* Kullback-Leibler, from the reference */
    bool agrees;       /* both find the same token most likely */
} cli_prediction;

/* Logits of the program and, unless it is NULL, of the reference, and the token that they predict. */
typedef struct cli_scored_row {
    const float *logits, *reference;
    int32_t token;
    cli_prediction *prediction;
} cli_scored_row;

/* Fills in the prediction of each row, on so many threads. */
void cli_score_rows(const cli_scored_row *rows, size_t count, uint32_t vocab_size, uint32_t threads);

/* Start from {0}. */
typedef struct cli_scores {
    cli_average surprise;   /* -log p of each token */
    cli_average divergence; /* Kullback-Leibler, from the reference; count 0: there is none */
    cli_average agreement;  /* 1 where both find the same token most likely, otherwise 0 */
} cli_scores;

void cli_add_prediction(cli_scores *scores, const cli_prediction *prediction, bool has_reference);

/* What was scored: paths, and how many tokens a prediction may look back. */
typedef struct cli_scored {
    const char *program, *against, *file; /* against: NULL where there is no reference */
    const char *engine;
    uint32_t window;
} cli_scored;

/* Means with their standard errors, as lines for people or as one JSON object. */
void cli_print_scores(const cli_scores *scores, FILE *file);
void cli_print_scores_json(const cli_scored *scored, const cli_scores *scores, FILE *file);

#endif
