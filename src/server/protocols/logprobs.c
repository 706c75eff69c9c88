/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocols/protocol.h"

/* The token's bytes; null for a token that is part of a character. */
static json_t *bytes_json(const json_t *text, bool is_whole) {
    if (!is_whole)
        return json_null();
    json_t *bytes = json_array();
    for (size_t i = 0; i < json_string_length(text); i++)
        json_array_append_new(bytes, json_integer((unsigned char)json_string_value(text)[i]));
    return bytes;
}

static json_t *entry_json(server_generation *generation, int32_t token, float logprob) {
    bool is_whole;
    json_t *text = server_token_text(generation, token, &is_whole);
    json_t *bytes = bytes_json(text, is_whole);
    return json_pack("{s:o, s:o, s:o, s:i}", "token", text, "logprob", server_json_float(logprob), "bytes",
                     bytes, "token_id", (int)token);
}

void server_add_chat_logprobs(server_generation *generation, server_answer *answer,
                              const server_event *event) {
    if (!generation->request.wants_logprobs)
        return;
    json_t *entry = entry_json(generation, event->token, event->logprob), *top = json_array();
    for (uint32_t i = 0; i < event->top_logprobs; i++)
        json_array_append_new(top, entry_json(generation, event->top_tokens[i], event->top_token_logprob[i]));
    json_object_set_new(entry, "top_logprobs", top);
    if (!answer->logprobs)
        answer->logprobs = json_pack("{s:[]}", "content");
    json_array_append_new(json_object_get(answer->logprobs, "content"), entry);
}

static json_t *top_json(server_generation *generation, const server_event *event) {
    json_t *top = json_object();
    bool is_whole;
    for (uint32_t i = 0; i < event->top_logprobs; i++) {
        json_t *text = server_token_text(generation, event->top_tokens[i], &is_whole);
        if (!json_object_get(top, json_string_value(text))) /* the likeliest of those spelled alike */
            json_object_set_new(top, json_string_value(text), server_json_float(event->top_token_logprob[i]));
        json_decref(text);
    }
    return top;
}

void server_add_text_logprobs(server_generation *generation, server_answer *answer,
                              const server_event *event) {
    if (!generation->request.wants_logprobs)
        return;
    bool is_whole;
    if (!answer->logprobs)
        answer->logprobs = json_pack("{s:[], s:[], s:[], s:[], s:[]}", "tokens", "token_ids",
                                     "token_logprobs", "top_logprobs", "text_offset");
    json_t *all = answer->logprobs, *text = server_token_text(generation, event->token, &is_whole);
    json_array_append_new(json_object_get(all, "text_offset"), json_integer((json_int_t)answer->text_offset));
    answer->text_offset += json_string_length(text);
    json_array_append_new(json_object_get(all, "tokens"), text);
    json_array_append_new(json_object_get(all, "token_ids"), json_integer(event->token));
    json_array_append_new(json_object_get(all, "token_logprobs"), server_json_float(event->logprob));
    json_array_append_new(json_object_get(all, "top_logprobs"),
                          event->top_logprobs > 0 ? top_json(generation, event) : json_null());
}

json_t *server_told_logprobs(server_answer *answer) {
    json_t *taken = answer->logprobs;
    answer->logprobs = NULL;
    return taken ? taken : json_null();
}
