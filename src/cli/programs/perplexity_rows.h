/* SPDX-License-Identifier: Apache-2.0
 *
 * What `gumbel perplexity` finds in the rows of logits of a step.
 */
#ifndef GUMBEL_CLI_PROGRAMS_PERPLEXITY_ROWS_H
#define GUMBEL_CLI_PROGRAMS_PERPLEXITY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
