/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation: its messages, how they are rendered, the last prompt, and the reply to it as it comes.
 */
#ifndef GUMBEL_TEXT_CONVERSATION_CONVERSATION_H
#define GUMBEL_TEXT_CONVERSATION_CONVERSATION_H

#include "base/byte_buffer.h"
#include "text/conversation/replay.h"

#include <jansson.h>

enum { GB_CHAT_TEXTS = 4 };

struct gumbel_conversation {
    const gumbel_tokenizer *tokenizer;
    json_t *messages;           /* an array, as they came */
    gumbel_chat_options chat;   /* points into texts */
    char *texts[GB_CHAT_TEXTS]; /* owned */
    gb_id_list tokens;          /* the last prompt, and what was generated after it */
    gb_id_list spare, next;     /* of the prompt that is made */
    /* The last reply; NULL before the first prompt. */
    gumbel_reply *reply;
    bool is_open;                    /* it goes on */
    gumbel_detokenizer *detokenizer; /* what the session's own shows */
    gb_byte_buffer text;             /* of the tokens that were added */
    size_t *ends;                    /* [tokens.count - first] where each one's text ends */
    size_t end_capacity;
    size_t first, given; /* the reply's first token, and the first that it was not yet given */
    size_t certain;      /* bytes of the text that no stop string takes back */
};

/* Begins a reply to the tokens, which are the prompt. Errors: those of gumbel_reply_create. */
gumbel_status gb_conversation_open_reply(gumbel_conversation *conversation, gumbel_error *error);

/* Drops the reply that goes on, if one does. */
void gb_conversation_drop_reply(gumbel_conversation *conversation);

#endif
