/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `gumbel run`: what its flags say, the prompt, the report in JSON.
 */
#ifndef GUMBEL_CLI_RUN_RUN_H
#define GUMBEL_CLI_RUN_RUN_H

#include "cli/chat/commands.h"
#include "cli/model/chat_template.h"
#include "cli/model/drafts.h"
#include "cli/model/grammar.h"
#include "cli/model/model.h"
#include "cli/model/prompt.h"
#include "cli/model/reasoning.h"
#include "cli/model/reply.h"
#include "cli/model/stops.h"
#include "cli/sandbox/sandbox.h"

typedef struct run_options {
    const char *prompt, *file;
    const char *draft_from; /* a file that the answer is likely to contain */
    cli_words words;        /* the prompt as operands */
    cli_tokens tokens;
    bool plain, interactive, single_turn;
    cli_integer max_new_tokens;
    cli_integer top_logprobs;
    bool print_tokens, ignore_stop, stats, logprobs, json, quiet;
} run_options;

typedef struct run_arguments {
    cli_model_options model;
    cli_sampling_options sampling;
    cli_format_options format;
    cli_template_options template;
    cli_reasoning_options reasoning;
    cli_stop_options stop;
    cli_grammar_options grammar;
    cli_draft_options draft;
    cli_typing_options typing;
    cli_sandbox_options sandbox;
    run_options run;
} run_arguments;

/* What an answer is made with. */
typedef struct run_state {
    cli_model model;
    cli_sampling sampling;
    cli_generator generator;
    cli_output output;
    cli_record record;
    cli_stops stops;
    gumbel_grammar *grammar; /* NULL: any answer will do */
    cli_tokens prompt, predicted;
    cli_reply reply;
    gumbel_conversation *conversation; /* of the prompt's messages; NULL: it is plain text or tokens */
} run_state;

/* New tokens after which an answer ends: those of --max-new-tokens, or 128; 0: without a limit. */
uint32_t run_token_limit(const run_options *options);

/* The flags that say what the prompt is, for run_arguments.run. */
extern const cli_option run_prompt_table[];

/* Where a prompt comes from: how many of the flags and operands give one. */
int run_prompt_sources(const run_options *options);

/* The prompt as tokens: a user's message where there is a chat template, plain text otherwise; those of
 * --tokens as they are. Notes tell what a user may not expect. The model is open. */
gumbel_status run_make_prompt(const run_arguments *arguments, run_state *state, gumbel_error *error);

/* Reads the tokens that drafts are taken from, if the flags name a file. */
gumbel_status run_read_prediction(const run_options *options, run_state *state, gumbel_error *error);

/* Prints one line: an object with the reply, the settings it was drawn with, the program and the times. */
void run_print_json(const run_arguments *arguments, const run_state *state, FILE *file);

#endif
