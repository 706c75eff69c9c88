/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated tokens on standard output, as they come: as text, or as ids separated by commas.
 */
#ifndef GUMBEL_CLI_OUTPUT_H
#define GUMBEL_CLI_OUTPUT_H

#include "gumbel.h"

typedef struct cli_output {
    gumbel_detokenizer *detokenizer; /* NULL: ids are printed */
    bool began;                      /* something was printed */
    bool line_ended;                 /* the last byte printed was a newline */
} cli_output;

/* Prints text through the tokenizer, or ids where tokenizer is NULL. */
gumbel_status cli_output_open(cli_output *output, const gumbel_tokenizer *tokenizer, gumbel_error *error);
void cli_output_close(cli_output *output);

gumbel_status cli_output_token(cli_output *output, int32_t token, gumbel_error *error);

/* Prints what the detokenizer holds back and ends the line; begins anew. */
void cli_output_end(cli_output *output);

/* Prints ids as one line. */
void cli_print_ids(const int32_t *ids, size_t count);

#endif
