/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a conversation's file, which /load and --messages read: refused, or its messages are added to
 * a conversation, which writes what it reads again.
 */
#include "base/byte_buffer.h"
#include "cli/chat/messages.h"
#include "support/paths.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    abort();
}

static const gumbel_tokenizer *tokenizer_once(void) {
    static gumbel_tokenizer *tokenizer;
    gumbel_error error;
    if (!tokenizer)
        require(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, &error), &error);
    return tokenizer;
}

static void keep(void *user, const char *text, size_t length) {
    gb_buffer_append(user, text, length);
}

static gumbel_conversation *new_conversation(void) {
    gumbel_conversation *conversation;
    gumbel_error error;
    require(gumbel_conversation_create(tokenizer_once(), &conversation, &error), &error);
    return conversation;
}

static gb_byte_buffer text_of(const gumbel_conversation *conversation) {
    gb_byte_buffer text = {0};
    gumbel_error error;
    require(gumbel_conversation_write(conversation, keep, &text, &error), &error);
    gb_buffer_append(&text, "", 1);
    return text;
}

/* What was written is read again, and written the same. */
static void write_again(const gumbel_conversation *conversation) {
    gumbel_conversation *other = new_conversation();
    gb_byte_buffer first = text_of(conversation), second;
    gumbel_error error;
    require(gumbel_conversation_add_json(other, first.text, &error), &error);
    second = text_of(other);
    if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
        abort();
    gb_buffer_free(&first);
    gb_buffer_free(&second);
    gumbel_conversation_destroy(other);
}

static void render(const gumbel_conversation *conversation, const char *tools) {
    gb_byte_buffer text = text_of(conversation), rendered = {0};
    const gumbel_chat_options options = {.size = sizeof options, .messages_json = text.text, .tools = tools};
    (void)gumbel_chat_render(tokenizer_once(), NULL, 0, &options, keep, &rendered, NULL);
    gb_buffer_free(&text);
    gb_buffer_free(&rendered);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cli_messages messages;
    gumbel_error error = {.status = GUMBEL_OK};
    gumbel_status status = cli_messages_parse("fuzz", (const char *)data, size, &messages, &error);
    if (status == GUMBEL_OK) {
        gumbel_conversation *conversation = new_conversation();
        status = gumbel_conversation_add_json(conversation, messages.messages, &error);
        if (status == GUMBEL_OK) {
            write_again(conversation);
            render(conversation, messages.tools);
            require(cli_messages_set_system(conversation, "Be brief.", &error), &error);
            require(cli_messages_set_system(conversation, NULL, &error), &error);
        }
        gumbel_conversation_destroy(conversation);
    }
    if (status != GUMBEL_OK && (error.status != status || !error.message[0]))
        abort();
    cli_messages_free(&messages);
    return 0;
}
