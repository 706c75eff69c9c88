/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/conversation.h"

#include "base/memory.h"

#include <string.h>

/* Behind the submission's own branch positions. */
static gumbel_status add_branches(gumbel_submission *submission, gb_conversation *conversation,
                                  gumbel_error *error) {
    const gb_chat_prompt *prompt = &conversation->prompt;
    const size_t given = submission->branch_position_count;
    if (given > 0 && !submission->branch_positions)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: branch_positions is NULL");
    conversation->branches = gb_allocate(given + 2, sizeof *conversation->branches);
    if (!conversation->branches)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a request");
    if (given > 0)
        memcpy(conversation->branches, submission->branch_positions, given * sizeof *conversation->branches);
    conversation->branches[given] = prompt->head_end;
    conversation->branches[given + 1] = prompt->messages_end;
    submission->branch_positions = conversation->branches;
    submission->branch_position_count = given + 2;
    return GUMBEL_OK;
}

gumbel_status gb_conversation_encode(gumbel_submission *submission, gb_conversation *conversation,
                                     gumbel_error *error) {
    const gumbel_chat_options *chat = submission->chat;
    if (!submission->messages && submission->message_count == 0 && !chat)
        return GUMBEL_OK;
    if (submission->tokens || submission->token_count > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "submit: a prompt is tokens or messages, and both are given");
    if (submission->message_count > 0 && !submission->messages)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: messages is NULL");
    if (!submission->tokenizer)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "submit: messages need a tokenizer to encode them by (field tokenizer)");
    GB_TRY(gb_chat_prompt_create(submission->tokenizer, submission->messages, submission->message_count, chat,
                                 &conversation->prompt, error));
    submission->tokens = conversation->prompt.tokens;
    submission->token_count = conversation->prompt.count;
    return add_branches(submission, conversation, error);
}

void gb_conversation_free(gb_conversation *conversation) {
    gb_chat_prompt_free(&conversation->prompt);
    gb_free(conversation->branches);
}
