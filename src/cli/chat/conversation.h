/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation in one session, whose replies are printed: gumbel_conversation with messages, plain text
 * with
 * --raw.
 */
#ifndef GUMBEL_CLI_CHAT_CONVERSATION_H
#define GUMBEL_CLI_CHAT_CONVERSATION_H

#include "cli/model/chat_template.h"
#include "cli/model/grammar.h"
#include "cli/model/prompt.h"
#include "cli/model/reply.h"
#include "cli/model/stops.h"

typedef struct cli_conversation {
    cli_model *model;
    cli_generator generator;
    cli_output output;
    cli_sampling sampling;
    cli_format_options format;
    cli_template template;
    cli_stops stops;
    gumbel_grammar *grammar;   /* NULL: any reply will do */
    bool reasons;              /* a reply may begin with reasoning before it follows the grammar */
    bool has_reasoning_budget; /* likewise of gumbel_generate_options */
    uint32_t reasoning_budget;
    gumbel_drafting drafting;
    uint32_t max_new_tokens;       /* 0: no limit */
    cli_reply reply;               /* the last one */
    gumbel_conversation *messages; /* made when it is first needed; without a message with --raw */
    const char *system;            /* the one that they begin with; NULL: none, or their own */
    size_t asked;                  /* messages before the last reply; 0: there is none */
    size_t answered;               /* calls of it that have results */
} cli_conversation;

/* Puts the settings to work for the messages. Errors: MEMORY. */
gumbel_status cli_conversation_apply(cli_conversation *conversation, gumbel_error *error);

/* Takes a user's turn, length bytes of text, and prints the reply. A turn that fails or is interrupted before
 * its first token leaves the messages as they were. Errors: ARGUMENT for a zero byte in a message (plain
 * text may have it), LIMIT when the context has no room for it, MEMORY. */
gumbel_status cli_converse(cli_conversation *conversation, const char *text, size_t length,
                           gumbel_error *error);

/* The next call of the last reply that has no result yet. False: there is none. */
bool cli_open_call(const cli_conversation *conversation, gumbel_reply_part *call);

/* Gives that call its result; after the last one the reply to them is printed. Errors as above. */
gumbel_status cli_answer_call(cli_conversation *conversation, const char *text, size_t length,
                              gumbel_error *error);

/* Replaces the last reply by another, from the same prompt and the seed that is next. ARGUMENT when there is
 * none. */
gumbel_status cli_regenerate(cli_conversation *conversation, gumbel_error *error);

/* Begins anew; the seed goes on. */
void cli_conversation_reset(cli_conversation *conversation);

/* To a session's file and its messages beside it (path.json), and from both in place of this conversation.
 * With --raw there are no messages. */
gumbel_status cli_conversation_save(cli_conversation *conversation, const char *path, gumbel_error *error);
gumbel_status cli_conversation_load(cli_conversation *conversation, const char *path, gumbel_error *error);

void cli_conversation_free(cli_conversation *conversation);

#endif
