/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags of drafts: who guesses the next tokens, and how many of them a step verifies.
 */
#ifndef GUMBEL_CLI_MODEL_DRAFTS_H
#define GUMBEL_CLI_MODEL_DRAFTS_H

#include "cli/model/model.h"

#include <stdio.h>

/* What --draft may be besides a program. */
#define CLI_DRAFT_WORDS "auto lookup heads off"

typedef struct cli_draft_options {
    const char *who; /* a word or a program */
    cli_integer most;
} cli_draft_options;

extern const cli_option cli_draft_table[];

/* What the flags say, or by default. */
gumbel_drafting cli_drafting(const cli_draft_options *flags);

/* The program to open for guessing; NULL: none. */
const char *cli_draft_model(const cli_draft_options *flags);

/* Draft tokens of one sequence in a step, for the options of an engine with so many slots; 0: none. Many
 * slots have few by default, since each row takes memory and a full step gains little. */
uint32_t cli_draft_tokens(const cli_draft_options *flags, int slots);

/* Sets what the options of a model, whose slots are settled, say of drafts. */
void cli_use_drafts(const cli_draft_options *flags, cli_model_options *options);

/* A line of --stats on what drafts did; none where there were none. */
void cli_print_draft_stats(const gumbel_draft_stats *stats, FILE *file);

#endif
