/* SPDX-License-Identifier: Apache-2.0
 *
 * What answers are held to: the flags that `run` and `chat` share.
 */
#ifndef GUMBEL_CLI_MODEL_GRAMMAR_H
#define GUMBEL_CLI_MODEL_GRAMMAR_H

#include "cli/options/options.h"
#include "gumbel.h"

typedef struct cli_grammar_options {
    const char *schema, *grammar; /* a text or a file */
    const char *regex;
    bool json, in_order, compact;
} cli_grammar_options;

extern const cli_option cli_grammar_table[];

/* Makes the grammar of the flags, in place of *grammar; NULL without such a flag. Errors, after which
 * *grammar is as it was: ARGUMENT, IO, and those of gumbel_grammar_create. */
gumbel_status cli_read_grammar(const cli_grammar_options *flags, const gumbel_tokenizer *tokenizer,
                               gumbel_grammar **grammar, gumbel_error *error);

#endif
