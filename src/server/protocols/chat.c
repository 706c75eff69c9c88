/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/chat/completions.
 */
#include "server/protocols/openai.h"

#include <string.h>

#define CHUNK "chat.completion.chunk"

/* ---- Whole --------------------------------------------------------------------------------------------- */

static void collect_token(void *user, server_answer *answer, const server_event *event) {
    server_add_chat_logprobs(user, answer, event);
}

static json_t *choice_json(server_answer *answer) {
    gb_byte_buffer message = {0};
    if (gumbel_reply_message(answer->reply, gb_buffer_write, &message, NULL) != GUMBEL_OK || message.failed)
        server_json_fail();
    json_t *choice =
        json_pack("{s:i, s:o?, s:o, s:s, s:o}", "index", (int)answer->index, "message",
                  json_loadb(message.size > 0 ? message.text : "", message.size, JSON_ALLOW_NUL, NULL),
                  "logprobs", server_unsent_logprobs(answer), "finish_reason", server_answer_finish(answer),
                  "seed", server_json_seed(answer->seed));
    gb_buffer_free(&message);
    return choice;
}

static json_t *whole(server_generation *generation, server_responses *responses) {
    (void)responses;
    json_t *object = server_openai_object(generation, "chat.completion"), *choices = json_array();
    for (size_t i = 0; i < generation->answer_count; i++)
        json_array_append_new(choices, choice_json(&generation->answers[i]));
    json_object_set_new(object, "choices", choices);
    json_object_set_new(object, "usage", server_openai_usage(generation));
    server_add_prompt_logprobs(generation, 0, object);
    server_add_report(generation, object);
    return object;
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

static void send_delta(server_stream *stream, server_answer *answer, json_t *delta, bool is_finished) {
    server_openai_chunk(stream, CHUNK, answer, "delta", delta, is_finished);
}

static void begin(server_stream *stream) {
    for (size_t i = 0; i < stream->generation->answer_count; i++)
        send_delta(stream, &stream->generation->answers[i],
                   json_pack("{s:s, s:s}", "role", "assistant", "content", ""), false);
}

static void emit_token(void *user, server_answer *answer, const server_event *event) {
    server_stream *stream = user;
    server_add_chat_logprobs(stream->generation, answer, event);
}

/* Each delta of a call has its index, id, type and name: some clients want them all. */
static json_t *call_json(const gumbel_reply_delta *delta) {
    return json_pack("{s:[{s:i, s:s, s:s, s:{s:s, s:o}}]}", "tool_calls", "index", (int)delta->call, "id",
                     delta->id, "type", "function", "function", "name", delta->name, "arguments",
                     server_json_text(delta->text, delta->text_length));
}

static void emit_delta(void *user, server_answer *answer, const gumbel_reply_delta *delta) {
    const char *name = delta->type == GUMBEL_PART_CONTENT ? "content" : "reasoning_content";
    json_t *text;
    switch (delta->type) {
    case GUMBEL_PART_TOOL_CALL:
        send_delta(user, answer, call_json(delta), false);
        return;
    case GUMBEL_PART_CONTENT:
    case GUMBEL_PART_REASONING:
        if (delta->text_length == 0)
            return;
        if (delta->separator[0])
            server_openai_text_chunk(user, CHUNK, answer, "delta", name, delta->separator,
                                     strlen(delta->separator));
        server_openai_text_chunk(user, CHUNK, answer, "delta", name, delta->text, delta->text_length);
        return;
    case GUMBEL_PART_OTHER:
        text = json_loadb(delta->text, delta->text_length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        send_delta(user, answer, json_pack("{s:o?}", delta->name, text), false);
        return;
    }
}

static void emit_finish(void *user, server_answer *answer) {
    if (answer->status == GUMBEL_OK)
        send_delta(user, answer, json_object(), true);
}

static void end(server_stream *stream) {
    server_openai_end(stream, CHUNK);
}

const server_protocol server_chat = {
    .route = SERVER_CHAT,
    .id_prefix = "chatcmpl-",
    .ping = SERVER_OPENAI_PING,
    .collect = {.token = collect_token},
    .whole = whole,
    .begin = begin,
    .emit = {NULL, emit_token, emit_delta, emit_finish},
    .end = end,
    .fail = server_openai_fail,
    .error = server_openai_error,
};
