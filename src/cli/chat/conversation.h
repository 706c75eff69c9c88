/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation in one session: each turn runs only the tokens that are new.
 *
 * A reply in which the model thought is the exception. Chat formats leave earlier thoughts out, so before the
 * next turn the session goes back to where the rendered conversation and its tokens part, and runs the reply
 * again without its thought. For that the messages since the last plain turn are kept.
 */
#ifndef GUMBEL_CLI_CHAT_CONVERSATION_H
#define GUMBEL_CLI_CHAT_CONVERSATION_H

#include "cli/model/prompt.h"
#include "cli/model/reply.h"
#include "cli/model/stops.h"

typedef struct cli_conversation {
    cli_model *model;
    cli_generator generator;
    cli_output output;
    cli_sampling sampling;
    cli_format_options format;
    cli_stops stops;
    uint32_t max_new_tokens; /* 0: no limit */
    cli_reply reply;         /* the last one */
    /* What the session holds from `start` on, as messages. */
    gumbel_message *messages;
    size_t message_count, message_capacity;
    uint32_t start;
    bool continues, turn_is_closed; /* gumbel_chat_options of the tokens at start */
    bool thought;                   /* the last reply may have had a thought */
} cli_conversation;

/* Takes a user's turn, length bytes of text, and prints the reply. A turn that fails or is interrupted before
 * its first token leaves the conversation as it was. Errors: ARGUMENT for a zero byte in a message (plain
 * text may have it), LIMIT when the context has no room for it, MEMORY. */
gumbel_status cli_converse(cli_conversation *conversation, const char *text, size_t length,
                           gumbel_error *error);

/* Replaces the last reply by another, from the same prompt and the seed that is next. ARGUMENT when there is
 * none. */
gumbel_status cli_regenerate(cli_conversation *conversation, gumbel_error *error);

/* Begins anew; the seed goes on. */
void cli_conversation_reset(cli_conversation *conversation);

/* To a session's file, and from one in place of this conversation. */
gumbel_status cli_conversation_save(cli_conversation *conversation, const char *path, gumbel_error *error);
gumbel_status cli_conversation_load(cli_conversation *conversation, const char *path, gumbel_error *error);

void cli_conversation_free(cli_conversation *conversation);

#endif
