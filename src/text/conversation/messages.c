/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation's messages and settings, as gumbel.h has them.
 */
#include "base/memory.h"
#include "base/versioned.h"
#include "text/chat/chat_messages.h"
#include "text/conversation/conversation.h"

#include <string.h>

gumbel_status gumbel_conversation_create(const gumbel_tokenizer *tokenizer,
                                         gumbel_conversation **conversation, gumbel_error *error) {
    *conversation = NULL;
    gumbel_conversation *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_no_memory(error, "a conversation");
    created->tokenizer = tokenizer;
    created->chat.size = sizeof created->chat;
    created->messages = json_array();
    gumbel_status status = created->messages ? GUMBEL_OK : gb_no_memory(error, "a conversation");
    if (status == GUMBEL_OK)
        status = gumbel_detokenizer_create(tokenizer, false, &created->detokenizer, error);
    if (status == GUMBEL_OK)
        *conversation = created;
    else
        gumbel_conversation_destroy(created);
    return status;
}

static void free_texts(char *texts[GB_CHAT_TEXTS]) {
    for (size_t i = 0; i < GB_CHAT_TEXTS; i++)
        gb_free(texts[i]);
}

void gumbel_conversation_destroy(gumbel_conversation *conversation) {
    if (!conversation)
        return;
    gumbel_reply_destroy(conversation->reply);
    gumbel_detokenizer_destroy(conversation->detokenizer);
    json_decref(conversation->messages);
    free_texts(conversation->texts);
    gb_free(conversation->tokens.ids);
    gb_free(conversation->spare.ids);
    gb_free(conversation->next.ids);
    gb_free(conversation->ends);
    gb_buffer_free(&conversation->text);
    gb_free(conversation);
}

/* ---- Settings ------------------------------------------------------------------------------------------ */

gumbel_status gumbel_conversation_set_chat(gumbel_conversation *conversation, const gumbel_chat_options *chat,
                                           gumbel_error *error) {
    gumbel_chat_options settled;
    char *texts[GB_CHAT_TEXTS] = {0};
    GB_TRY(gb_read_versioned(chat, "chat options", &settled, sizeof settled, error));
    settled.size = sizeof settled;
    if (settled.messages_json || settled.no_generation_prompt || settled.continue_final_message)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "a conversation has its own messages, and opens the assistant's turn: messages_json, "
                       "no_generation_prompt and continue_final_message are not for it");
    const char **const fields[GB_CHAT_TEXTS] = {&settled.tools, &settled.template_kwargs,
                                                &settled.template_name, &settled.template_text};
    for (size_t i = 0; i < GB_CHAT_TEXTS; i++) {
        if (!*fields[i])
            continue;
        *fields[i] = texts[i] = gb_copy_string(*fields[i], strlen(*fields[i]));
        if (!texts[i]) {
            free_texts(texts);
            return gb_no_memory(error, "a conversation");
        }
    }
    free_texts(conversation->texts);
    memcpy(conversation->texts, texts, sizeof texts);
    conversation->chat = settled;
    return GUMBEL_OK;
}

/* ---- Messages ------------------------------------------------------------------------------------------ */

/* Adds the messages of the array, which it gives back, if all are good. */
static gumbel_status add(gumbel_conversation *conversation, json_t *array, gumbel_error *error) {
    json_t *checked = json_deep_copy(array), *written = NULL;
    gumbel_status status = checked ? GUMBEL_OK : gb_no_memory(error, "a conversation");
    if (status == GUMBEL_OK && json_array_size(array) > 0)
        status = gb_chat_complete_messages(checked, &written, error);
    if (status == GUMBEL_OK && conversation->is_open)
        status = gb_fail(error, GUMBEL_ERROR_ARGUMENT, "a reply goes on: it must end before messages follow");
    if (status == GUMBEL_OK && json_array_extend(conversation->messages, array) != 0)
        status = gb_no_memory(error, "a conversation");
    json_decref(checked);
    json_decref(written);
    json_decref(array);
    return status;
}

gumbel_status gumbel_conversation_add(gumbel_conversation *conversation, const gumbel_message *messages,
                                      size_t count, gumbel_error *error) {
    json_t *array;
    GB_TRY(gb_chat_messages_to_json(messages, count, &array, error));
    return add(conversation, array, error);
}

gumbel_status gumbel_conversation_add_json(gumbel_conversation *conversation, const char *json,
                                           gumbel_error *error) {
    json_t *array;
    GB_TRY(gb_chat_read_json("messages", json, JSON_ARRAY, &array, error));
    return add(conversation, array, error);
}

size_t gumbel_conversation_count(const gumbel_conversation *conversation) {
    return json_array_size(conversation->messages);
}

void gumbel_conversation_truncate(gumbel_conversation *conversation, size_t count) {
    gb_conversation_drop_reply(conversation);
    for (size_t i = json_array_size(conversation->messages); i > count; i--)
        json_array_remove(conversation->messages, i - 1);
    if (count == 0)
        conversation->tokens.count = 0;
}

static int append(const char *text, size_t length, void *buffer) {
    gb_buffer_append(buffer, text, length);
    return 0;
}

gumbel_status gumbel_conversation_write(const gumbel_conversation *conversation, gumbel_write_callback write,
                                        void *user, gumbel_error *error) {
    gb_byte_buffer json = {0};
    bool good = json_dump_callback(conversation->messages, append, &json, JSON_COMPACT) == 0 && !json.failed;
    if (good)
        write(user, (const char *)json.data, json.size);
    gb_buffer_free(&json);
    return good ? GUMBEL_OK : gb_no_memory(error, "a conversation");
}
