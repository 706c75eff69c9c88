/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation as a prompt for the prefix cache: its tokens, and where prompts that begin like it will go
 * on otherwise.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_PROMPT_H
#define GUMBEL_TEXT_CHAT_CHAT_PROMPT_H

#include "base/status.h"

/* Starts zeroed. */
typedef struct gb_chat_prompt {
    int32_t *tokens; /* [count], owned */
    size_t count;
    /* Tokens before what the first message behind system messages and tools says, and before the generation
     * prompt, which an earlier reply may be written without. 0: not found. */
    uint32_t head_end, messages_end;
} gb_chat_prompt;

/* The tokens of gumbel_chat_encode, with its errors. Thread-safe. */
gumbel_status gb_chat_prompt_create(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                    size_t count, const gumbel_chat_options *options, gb_chat_prompt *prompt,
                                    gumbel_error *error);

void gb_chat_prompt_free(gb_chat_prompt *prompt);

#endif
