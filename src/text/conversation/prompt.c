/* SPDX-License-Identifier: Apache-2.0
 *
 * The prompt of a conversation's next turn.
 */
#include "base/memory.h"
#include "base/versioned.h"
#include "text/chat/chat_encode.h"
#include "text/conversation/conversation.h"

#include <stdlib.h>

/* What the next prompt will stand for is not known yet: any reply and any message are as good. */
static const char some_turn[] =
    "[{\"role\":\"assistant\",\"content\":\"0\"},{\"role\":\"user\",\"content\":\"0\"}]";

static int append(const char *text, size_t length, void *buffer) {
    gb_buffer_append(buffer, text, length);
    return 0;
}

/* The messages, and with_turn one turn more, as JSON that ends in a zero byte. */
static gumbel_status dump_messages(const gumbel_conversation *conversation, bool with_turn,
                                   gb_byte_buffer *json, gumbel_error *error) {
    json_t *messages = json_incref(conversation->messages);
    bool good = true;
    if (with_turn) {
        json_t *turn = json_loads(some_turn, 0, NULL);
        json_decref(messages);
        messages = json_copy(conversation->messages);
        good = turn && messages && json_array_extend(messages, turn) == 0;
        json_decref(turn);
    }
    good = good && json_dump_callback(messages, append, json, JSON_COMPACT) == 0;
    gb_buffer_append(json, "", 1);
    json_decref(messages);
    return good && !json->failed ? GUMBEL_OK
                                 : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a conversation");
}

static gumbel_status render(const gumbel_conversation *conversation, bool with_turn, gb_jinja_output *output,
                            gumbel_error *error) {
    gb_byte_buffer json = {0};
    gumbel_chat_options options = conversation->chat;
    gumbel_status status = dump_messages(conversation, with_turn, &json, error);
    options.messages_json = (const char *)json.data;
    if (status == GUMBEL_OK)
        status = gb_chat_render_with(conversation->tokenizer, NULL, 0, &options, output, error);
    gb_buffer_free(&json);
    return status;
}

/* Renders and encodes it. What was run or generated is that of the conversation, or what is held where it
 * has nothing of its own yet. */
static gumbel_status encode(const gumbel_conversation *conversation, bool with_turn, const int32_t *held,
                            size_t held_count, gb_id_list *tokens, gumbel_error *error) {
    const gb_id_list *own = &conversation->tokens;
    const bool has_own = own->count > 0;
    gb_jinja_output output = {0};
    GB_TRY(render(conversation, with_turn, &output, error));
    gumbel_status status = gb_encode_replaying(conversation->tokenizer, &output, has_own ? own->ids : held,
                                               has_own ? own->count : held_count, tokens, error);
    gb_jinja_output_free(&output);
    return status;
}

/* How many of the prompt's tokens the one after the next turn will begin with. None where that cannot be
 * said, as with a template that does not take these messages. */
static gumbel_status find_stable(gumbel_conversation *conversation, const int32_t *held, size_t held_count,
                                 size_t *stable, gumbel_error *error) {
    gb_id_list *spare = &conversation->spare, *next = &conversation->next;
    gumbel_status status = encode(conversation, true, held, held_count, spare, error);
    *stable = status == GUMBEL_OK ? gb_common_tokens(next->ids, next->count, spare->ids, spare->count) : 0;
    return status == GUMBEL_ERROR_MEMORY ? status : GUMBEL_OK;
}

static size_t at_most(size_t value, size_t limit) {
    return value < limit ? value : limit;
}

gumbel_status gumbel_conversation_prompt(gumbel_conversation *conversation, const int32_t *held,
                                         size_t held_count, gumbel_turn *turn, gumbel_error *error) {
    gb_id_list *next = &conversation->next;
    size_t stable;
    GB_TRY(gb_check_versioned(turn, "turn", error));
    GB_TRY(encode(conversation, false, held, held_count, next, error));
    if (next->count == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the chat template makes no text of this conversation");
    GB_TRY(find_stable(conversation, held, held_count, &stable, error));
    const gb_id_list last = conversation->tokens;
    conversation->tokens = *next;
    *next = last;
    gumbel_status status = gb_conversation_open_reply(conversation, error);
    if (status != GUMBEL_OK) {
        *next = conversation->tokens;
        conversation->tokens = last;
        return status;
    }
    const gb_id_list *tokens = &conversation->tokens;
    const gumbel_turn made = {
        .size = turn->size,
        .tokens = tokens->ids,
        .count = tokens->count,
        .held = at_most(gb_common_tokens(tokens->ids, tokens->count, held, held_count), tokens->count - 1),
        .stable = at_most(stable, tokens->count - 1),
    };
    gb_write_versioned(&made, sizeof made, turn);
    return GUMBEL_OK;
}
