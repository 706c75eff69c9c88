/* SPDX-License-Identifier: Apache-2.0
 *
 * The text that `gumbel perplexity` scores: its tokens, and the windows that they are cut into.
 */
#ifndef GUMBEL_CLI_PROGRAMS_PERPLEXITY_TEXT_H
#define GUMBEL_CLI_PROGRAMS_PERPLEXITY_TEXT_H

#include "cli/model/model.h"

/* Where the text is, and what of it is scored. */
typedef struct cli_scored_source {
    const char *program, *against, *file; /* paths; against: NULL where there is no reference */
    const gb_byte_buffer *text;           /* NULL: the file is read */
    uint32_t window;                      /* positions that a prediction may look back */
    uint32_t count;                       /* of the text's tokens the first; 0: all */
    bool second_half;
} cli_scored_source;

/* A text longer than the context is cut into windows. Each begins with the model's bos, where it expects one;
 * the token after a window's beginning is the first one that it may score. */
typedef struct cli_scored_text {
    cli_tokens tokens;
    bool begins_with_bos; /* a token that is not the text's */
    bool is_half;         /* the second half of each full window */
    uint32_t window;
} cli_scored_text;

/* Reads the text, and checks that there is something to score and that other (zeroed where there is none) has
 * the same tokens. Free text->tokens, also after a failure. */
gumbel_status cli_read_scored_text(const cli_model *model, const cli_model *other,
                                   const cli_scored_source *source, cli_scored_text *text,
                                   gumbel_error *error);

/* Tokens that are run: all but the last, or those of full windows. */
size_t cli_count_runs(const cli_scored_text *text);

size_t cli_count_windows(const cli_scored_text *text);

/* The token that is run at an index of the text, which is window's position. */
int32_t cli_run_token(const cli_scored_text *text, size_t index, uint32_t position);

/* Whether what follows a window's position is scored. */
bool cli_is_scored(const cli_scored_text *text, uint32_t position);

#endif
