/* SPDX-License-Identifier: Apache-2.0
 *
 * From what the user wrote to the tokens that the model reads.
 */
#ifndef GUMBEL_CLI_MODEL_PROMPT_H
#define GUMBEL_CLI_MODEL_PROMPT_H

#include "cli/options/options.h"

/* How text becomes a prompt; the flags that `run` and `chat` share. */
typedef struct cli_format_options {
    bool raw;
    const char *system;
    int no_wrap;           /* a terminal's lines are left as they come */
    const char *reasoning; /* "show", "hide" or "only"; NULL: shown on a terminal */
} cli_format_options;

extern const cli_option cli_format_table[];

/* Plain text as tokens, appended to tokens; add_special puts what the model expects around it (bos). */
gumbel_status cli_encode_text(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                              const gumbel_encode_options *options, cli_tokens *tokens, gumbel_error *error);

/* A conversation as tokens, appended to tokens. */
gumbel_status cli_encode_messages(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                  size_t count, const gumbel_chat_options *options, cli_tokens *tokens,
                                  gumbel_error *error);

#endif
