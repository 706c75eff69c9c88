/* SPDX-License-Identifier: Apache-2.0
 *
 * What answers are held to: the flags that `run` and `chat` share.
 */
#ifndef GUMBEL_CLI_MODEL_GRAMMAR_H
#define GUMBEL_CLI_MODEL_GRAMMAR_H

#include "cli/model/model.h"

typedef struct cli_grammar_options {
    const char *schema, *grammar; /* a text or a file */
    const char *regex;
    bool json, in_order, compact, strict;
    const char *tool_choice; /* NULL: as the model likes */
} cli_grammar_options;

extern const cli_option cli_grammar_table[];

/* Makes the grammar of the flags, in place of *grammar; NULL without such a flag. tools: the file of those
 * that the answer may call; NULL: none. Where no flag asks for more, and their grammar cannot be had, a note
 * says so. Errors, after which *grammar is as it was: ARGUMENT, IO, and those of gumbel_grammar_create. */
gumbel_status cli_read_grammar(const cli_grammar_options *flags, const char *tools, const cli_model *model,
                               gumbel_grammar **grammar, gumbel_error *error);

#endif
