/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation's reply as it is generated. Where a stop string may take text back, its tokens wait.
 */
#include "base/memory.h"
#include "base/versioned.h"
#include "text/conversation/conversation.h"

gumbel_status gb_conversation_open_reply(gumbel_conversation *conversation, gumbel_error *error) {
    const gb_id_list *tokens = &conversation->tokens;
    const gumbel_reply_options options = {.size = sizeof options,
                                          .tools = conversation->chat.tools,
                                          .prompt = tokens->ids,
                                          .prompt_count = tokens->count};
    const char *text;
    size_t length;
    gumbel_reply *reply;
    GB_TRY(gumbel_reply_create(conversation->tokenizer, &options, &reply, error));
    gumbel_reply_destroy(conversation->reply);
    gumbel_detokenize_end(conversation->detokenizer, &text, &length);
    conversation->reply = reply;
    conversation->is_open = true;
    conversation->first = conversation->given = tokens->count;
    conversation->certain = conversation->text.size = 0;
    conversation->text.failed = false;
    return GUMBEL_OK;
}

void gb_conversation_drop_reply(gumbel_conversation *conversation) {
    conversation->is_open = false;
}

gumbel_reply *gumbel_conversation_reply(gumbel_conversation *conversation) {
    return conversation->reply;
}

/* Notes the token, and where its text ends. */
static gumbel_status note_token(gumbel_conversation *conversation, int32_t token, gumbel_error *error) {
    gb_id_list *tokens = &conversation->tokens;
    const size_t count = tokens->count - conversation->first;
    const char *text;
    size_t length;
    if (!gb_grow((void **)&tokens->ids, &tokens->capacity, tokens->count + 1, sizeof *tokens->ids) ||
        !gb_grow((void **)&conversation->ends, &conversation->end_capacity, count + 1,
                 sizeof *conversation->ends))
        return gb_no_memory(error, "a reply");
    GB_TRY(gumbel_detokenize(conversation->detokenizer, token, &text, &length, error));
    gb_buffer_append(&conversation->text, text, length);
    if (conversation->text.failed)
        return gb_no_memory(error, "a reply");
    tokens->ids[tokens->count++] = token;
    conversation->ends[count] = conversation->text.size;
    return GUMBEL_OK;
}

/* Gives the reply the tokens whose text ends within the first `certain` bytes. */
static gumbel_status give(gumbel_conversation *conversation, size_t certain, gumbel_error *error) {
    for (; conversation->given < conversation->tokens.count; conversation->given++) {
        if (conversation->ends[conversation->given - conversation->first] > certain)
            break;
        GB_TRY(gumbel_reply_add_token(conversation->reply, conversation->tokens.ids[conversation->given],
                                      error));
    }
    return GUMBEL_OK;
}

/* Gives what a stop string has left of the token that it begins in. */
static gumbel_status give_rest(gumbel_conversation *conversation, gumbel_error *error) {
    const size_t index = conversation->given - conversation->first;
    const size_t begin = index > 0 ? conversation->ends[index - 1] : 0;
    if (conversation->given == conversation->tokens.count || conversation->certain <= begin)
        return GUMBEL_OK;
    return gumbel_reply_add_text(conversation->reply, (const char *)conversation->text.data + begin,
                                 conversation->certain - begin, error);
}

static void append(void *buffer, const char *text, size_t length) {
    gb_buffer_append(buffer, text, length);
}

/* Ends the reply, and adds it to the messages. */
static gumbel_status end_reply(gumbel_conversation *conversation, gumbel_error *error) {
    gb_byte_buffer json = {0};
    conversation->is_open = false;
    GB_TRY(gumbel_reply_end(conversation->reply, error));
    gb_buffer_append(&json, "[", 1);
    gumbel_status status = gumbel_reply_message(conversation->reply, append, &json, error);
    gb_buffer_append(&json, "]", 2);
    if (status == GUMBEL_OK && json.failed)
        status = gb_no_memory(error, "a reply");
    if (status == GUMBEL_OK)
        status = gumbel_conversation_add_json(conversation, (const char *)json.data, error);
    gb_buffer_free(&json);
    return status;
}

static gumbel_status check_open(const gumbel_conversation *conversation, gumbel_error *error) {
    return conversation->is_open
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_ARGUMENT, "no reply goes on: there is no prompt");
}

gumbel_status gumbel_conversation_add_generated(gumbel_conversation *conversation,
                                                const gumbel_generated *generated, gumbel_error *error) {
    GB_TRY(gb_check_versioned(generated, "generated", error));
    GB_TRY(check_open(conversation, error));
    GB_TRY(note_token(conversation, generated->token, error));
    conversation->certain += generated->text_length;
    const bool may_be_cut = generated->text && (generated->finish == GUMBEL_FINISH_NONE ||
                                                generated->finish == GUMBEL_FINISH_STOP_STRING);
    GB_TRY(give(conversation, may_be_cut ? conversation->certain : SIZE_MAX, error));
    if (generated->finish == GUMBEL_FINISH_STOP_STRING)
        GB_TRY(give_rest(conversation, error));
    return generated->finish == GUMBEL_FINISH_NONE ? GUMBEL_OK : end_reply(conversation, error);
}

gumbel_status gumbel_conversation_end_reply(gumbel_conversation *conversation, gumbel_error *error) {
    GB_TRY(check_open(conversation, error));
    const gumbel_status status = give(conversation, SIZE_MAX, error);
    conversation->is_open = false;
    return status == GUMBEL_OK ? end_reply(conversation, error) : status;
}
