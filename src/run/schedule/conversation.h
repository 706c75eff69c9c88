/* SPDX-License-Identifier: Apache-2.0
 *
 * Submissions of conversations: they become prompts of tokens with branch positions.
 */
#ifndef GUMBEL_RUN_SCHEDULE_CONVERSATION_H
#define GUMBEL_RUN_SCHEDULE_CONVERSATION_H

#include "text/chat/chat_prompt.h"

/* What such a submission points to. Starts zeroed. */
typedef struct gb_conversation {
    gb_chat_prompt prompt;
    uint32_t *branches;
} gb_conversation;

/* Encodes the submission's conversation, if it has one, and puts tokens and branch positions in its place,
 * beside those that it has. Errors: ARGUMENT (tokens and messages, no tokenizer), MEMORY, those of
 * gumbel_chat_encode. */
gumbel_status gb_conversation_encode(gumbel_submission *submission, gb_conversation *conversation,
                                     gumbel_error *error);

void gb_conversation_free(gb_conversation *conversation);

#endif
