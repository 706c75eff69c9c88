/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the windows of a text, several at once, and scores what they predict.
 */
#ifndef GUMBEL_CLI_PROGRAMS_PERPLEXITY_WINDOWS_H
#define GUMBEL_CLI_PROGRAMS_PERPLEXITY_WINDOWS_H

#include "cli/base/progress.h"
#include "cli/programs/perplexity_scores.h"
#include "cli/programs/perplexity_text.h"

/* Windows to run at once: as many as wanted, as there are, and as have room for their states; at least one.
 * Of the models the programs alone are looked at, so that their engines can have as many slots. */
gumbel_status cli_settle_batch(const cli_model *model, const cli_model *other, const cli_scored_text *text,
                               uint32_t wanted, uint32_t *batch, gumbel_error *error);

/* Adds the predictions in the text's order, whatever the batch. The models' engines have batch slots, of
 * which the models' own sessions are one. */
gumbel_status cli_score_windows(const cli_model *model, const cli_model *other, const cli_scored_text *text,
                                uint32_t batch, cli_progress *progress, cli_scores *scores,
                                gumbel_error *error);

#endif
