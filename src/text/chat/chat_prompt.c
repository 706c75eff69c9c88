/* SPDX-License-Identifier: Apache-2.0
 *
 * Where prompts part is found by rendering the conversation again: with another first message, and without
 * the generation prompt. Up to there the texts are equal.
 */
#include "text/chat/chat_prompt.h"

#include "base/memory.h"
#include "base/versioned.h"
#include "text/chat/chat_encode.h"
#include "text/chat/chat_messages.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct conversation {
    const gumbel_tokenizer *tokenizer;
    const gumbel_message *messages;
    size_t count;
    gumbel_chat_options options;
    gb_jinja_output output;
} conversation;

/* ---- Encoding ------------------------------------------------------------------------------------------ */

/* Encodes a range of the text into an array of its own. */
static gumbel_status encode(const conversation *c, size_t start, size_t end, int32_t **tokens, size_t *count,
                            gumbel_error *error) {
    gb_token_sink sink = {.capacity = end - start};
    do { /* again where a normalizer has made the text longer */
        sink.capacity = sink.count > sink.capacity ? sink.count : sink.capacity;
        sink.count = 0;
        gb_free(sink.tokens);
        sink.tokens = gb_allocate(sink.capacity, sizeof *sink.tokens);
        if (!sink.tokens)
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to encode a conversation");
        const gumbel_status status = gb_chat_encode_range(c->tokenizer, &c->output, start, end, &sink, error);
        if (status != GUMBEL_OK) {
            gb_free(sink.tokens);
            return status;
        }
    } while (sink.count > sink.capacity);
    *tokens = sink.tokens;
    *count = sink.count;
    return GUMBEL_OK;
}

/* ---- Where prompts part -------------------------------------------------------------------------------- */

/* How many bytes the text has in common with another rendering; 0 where that fails. */
static size_t common_with(const conversation *c, const gumbel_message *messages, size_t count,
                          const gumbel_chat_options *options) {
    gb_jinja_output other = {0};
    size_t common = 0;
    if (gb_chat_render_with(c->tokenizer, messages, count, options, &other, NULL) != GUMBEL_OK)
        return 0;
    while (common < other.length && common < c->output.length && other.text[common] == c->output.text[common])
        common++;
    gb_jinja_output_free(&other);
    return common;
}

/* The conversation's first messages as JSON, and a user's who says what nobody does. NULL: no memory. */
static char *other_conversation(const conversation *c) {
    json_t *all = NULL, *first = json_array();
    const gumbel_status status =
        c->options.messages_json
            ? gb_chat_read_json("messages", c->options.messages_json, JSON_ARRAY, &all, NULL)
            : gb_chat_messages_to_json(c->messages, c->count, &all, NULL);
    bool good = status == GUMBEL_OK && first;
    for (size_t i = 0; good && i < json_array_size(all) && gb_chat_is_system(json_array_get(all, i)); i++)
        good = json_array_append(first, json_array_get(all, i)) == 0;
    good =
        good && json_array_append_new(first, json_pack("{s:s, s:s}", "role", "user", "content", "\x01")) == 0;
    char *text = good ? json_dumps(first, 0) : NULL;
    json_decref(first);
    json_decref(all);
    return text;
}

static size_t head_bytes(const conversation *c) {
    char *other = other_conversation(c);
    gumbel_chat_options options = c->options;
    if (!other)
        return 0;
    options.messages_json = other;
    options.continue_final_message = false;
    const size_t common = common_with(c, NULL, 0, &options);
    free(other);
    return common;
}

/* The first tokens are as many as the text's first bytes have, unless a token reaches across their end. */
static uint32_t head_end(const conversation *c, const gb_chat_prompt *prompt) {
    const size_t bytes = head_bytes(c);
    int32_t *tokens;
    size_t count, common = 0;
    if (bytes == 0 || encode(c, 0, bytes, &tokens, &count, NULL) != GUMBEL_OK)
        return 0;
    while (common < count && common < prompt->count && tokens[common] == prompt->tokens[common])
        common++;
    gb_free(tokens);
    return (uint32_t)common;
}

static size_t message_bytes(const conversation *c) {
    gumbel_chat_options options = c->options;
    if (options.no_generation_prompt || options.continue_final_message)
        return 0;
    options.no_generation_prompt = true;
    return common_with(c, c->messages, c->count, &options);
}

/* The last tokens are those of the text's last bytes, where a token begins there. */
static uint32_t messages_end(const conversation *c, const gb_chat_prompt *prompt) {
    const size_t bytes = message_bytes(c);
    int32_t *tokens;
    size_t count;
    if (bytes == 0 || encode(c, bytes, c->output.length, &tokens, &count, NULL) != GUMBEL_OK)
        return 0;
    const bool found = count <= prompt->count &&
                       memcmp(prompt->tokens + prompt->count - count, tokens, count * sizeof *tokens) == 0;
    gb_free(tokens);
    return found ? (uint32_t)(prompt->count - count) : 0;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

gumbel_status gb_chat_prompt_create(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                    size_t count, const gumbel_chat_options *options, gb_chat_prompt *prompt,
                                    gumbel_error *error) {
    conversation c = {.tokenizer = tokenizer, .messages = messages, .count = count};
    GB_TRY(gb_read_versioned(options, "chat options", &c.options, sizeof c.options, error));
    c.options.size = sizeof c.options;
    if (!c.options.has_time) { /* of all renderings the same */
        c.options.has_time = true;
        c.options.time = (int64_t)time(NULL);
    }
    GB_TRY(gb_chat_render_with(tokenizer, messages, count, &c.options, &c.output, error));
    const gumbel_status status = encode(&c, 0, c.output.length, &prompt->tokens, &prompt->count, error);
    if (status == GUMBEL_OK) {
        prompt->head_end = head_end(&c, prompt);
        prompt->messages_end = messages_end(&c, prompt);
    }
    gb_jinja_output_free(&c.output);
    return status;
}

void gb_chat_prompt_free(gb_chat_prompt *prompt) {
    gb_free(prompt->tokens);
    *prompt = (gb_chat_prompt){0};
}
