/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated tokens on standard output, as they come: as text, as ids separated by commas, or as one line for
 * each with its log-probability. On a terminal text is escaped, and wrapped at words where that is wanted; to
 * a pipe or a file it is written as it is.
 */
#ifndef GUMBEL_CLI_MODEL_OUTPUT_H
#define GUMBEL_CLI_MODEL_OUTPUT_H

#include "cli/base/storage.h"
#include "cli/terminal/text.h"
#include "gumbel.h"

#include <jansson.h>

/* A reply that is kept instead of printed, for a report in JSON. */
typedef struct cli_record {
    gb_byte_buffer text;
    json_t *logprobs; /* an array with an object for each token; NULL: none were wanted */
} cli_record;

void cli_record_free(cli_record *record);

typedef struct cli_output {
    gumbel_detokenizer *detokenizer; /* NULL: ids are printed */
    bool began;                      /* something was printed */
    bool line_ended;                 /* the last byte printed was a newline */
    /* Set by the caller after opening. */
    bool logprobs;      /* lines instead of text or ids */
    bool wraps;         /* text at words to a terminal's width */
    cli_record *record; /* keeps what would be printed; NULL: it is printed */
    gumbel_conversation
        *conversation;     /* gets the tokens, and gives the parts to print; NULL: text as it comes */
    const char *reasoning; /* --reasoning */
    /* The output's own. */
    bool is_terminal;
    bool has_part, is_styled; /* a part of this reply was begun; a thought is dimmed */
    bool hides_thought;       /* the reply has one that is not printed */
    gumbel_part_type part;
    const char *warning;    /* of the reply; NULL: none */
    cli_terminal_text text; /* what a terminal is shown */
} cli_output;

/* Prints text through the tokenizer, or ids where tokenizer is NULL. */
gumbel_status cli_output_open(cli_output *output, const gumbel_tokenizer *tokenizer, gumbel_error *error);
void cli_output_close(cli_output *output);

/* Prints one token: the text that came with it, which may end before it or in it. A line of log-probabilities
 * has its columns separated by tabs: the id, the log-probability, with a detokenizer the text in JSON's
 * quotes, escaped (what the token completes), then id:logprob of each of the likeliest tokens. */
gumbel_status cli_output_token(cli_output *output, const gumbel_generated *generated, gumbel_error *error);

/* Prints the text that came with a failure: what was held back until then; of a conversation its parts. */
void cli_output_rest(cli_output *output, const gumbel_generated *generated);

/* Prints length bytes of text. */
void cli_output_text(cli_output *output, const char *text, size_t length);

/* Prints what is held back and ends the line; begins anew. */
void cli_output_end(cli_output *output);

/* Prints text as a JSON string with its quotes, escaped as gumbel_escape does. */
void cli_print_quoted(const char *text, size_t length);

/* Prints ids as one line. */
void cli_print_ids(const int32_t *ids, size_t count);

#endif
