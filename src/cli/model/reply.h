/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates one reply and prints it while it comes, with the times it took.
 */
#ifndef GUMBEL_CLI_MODEL_REPLY_H
#define GUMBEL_CLI_MODEL_REPLY_H

#include "cli/model/generator.h"
#include "cli/model/output.h"
#include "cli/model/sampling.h"

#include <stdio.h>

typedef struct cli_reply {
    gumbel_finish finish; /* NONE: interrupted, or failed */
    int32_t stop_string;  /* finish STOP_STRING: which of the options; otherwise -1 */
    bool interrupted;     /* by Ctrl-C; what was generated until then is printed */
    cli_tokens tokens;    /* what was generated, a stop token included */
    size_t prompt_tokens; /* those given, not the turns before */
    uint32_t prompt_end;  /* the session's position after the prompt; 0 when it was not run to its end */
    double first_token_seconds; /* from the beginning to the first token */
    double decode_seconds;      /* from the first token to the last */
} cli_reply;

/* Runs the prompt and generates as the options say. Ctrl-C is no failure. On a failure what was generated
 * until then is printed, and its line ended. Free reply with cli_reply_free in any case; an earlier one that
 * it holds is freed here. */
gumbel_status cli_generate_reply(cli_generator *generator, const int32_t *tokens, size_t count,
                                 const gumbel_generate_options *options, cli_output *output, cli_reply *reply,
                                 gumbel_error *error);

void cli_reply_free(cli_reply *reply);

/* Why it ended: "stop" (a stop token or a stop string), "length", "context" or "interrupted". */
const char *cli_reply_finish(const cli_reply *reply);

/* The report of --stats and /stats. */
void cli_print_stats(const cli_model *model, const cli_sampling *sampling, const cli_reply *reply,
                     FILE *file);

#endif
