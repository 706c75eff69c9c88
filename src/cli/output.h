/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated tokens on standard output, as they come: as text, as ids separated by commas, or as one line for
 * each with its log-probability.
 */
#ifndef GUMBEL_CLI_OUTPUT_H
#define GUMBEL_CLI_OUTPUT_H

#include "cli/record.h"
#include "gumbel.h"

typedef struct cli_output {
    gumbel_detokenizer *detokenizer; /* NULL: ids are printed */
    bool began;                      /* something was printed */
    bool line_ended;                 /* the last byte printed was a newline */
    bool logprobs;                   /* lines instead of text or ids; set by the caller after opening */
    cli_record *record;              /* keeps what would be printed; NULL: it is printed; set likewise */
} cli_output;

/* Prints text through the tokenizer, or ids where tokenizer is NULL. */
gumbel_status cli_output_open(cli_output *output, const gumbel_tokenizer *tokenizer, gumbel_error *error);
void cli_output_close(cli_output *output);

/* Prints one token. A line of log-probabilities has its columns separated by tabs: the id, the
 * log-probability, with a detokenizer the text in JSON's quotes (what the token completes), then id:logprob
 * of each of the likeliest tokens. */
gumbel_status cli_output_token(cli_output *output, const gumbel_generated *generated, gumbel_error *error);

/* Prints what the detokenizer holds back and ends the line; begins anew. */
void cli_output_end(cli_output *output);

/* Prints ids as one line. */
void cli_print_ids(const int32_t *ids, size_t count);

#endif
