/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocols/protocol.h"

#include <stdio.h>

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

/* Adds a token of completions with its log-probability (NULL: none is known) and the likeliest ones. */
static void add_text_token(server_generation *generation, server_answer *answer, int32_t token,
                           json_t *logprob, json_t *top) {
    bool is_whole;
    if (!answer->logprobs)
        answer->logprobs = json_pack("{s:[], s:[], s:[], s:[], s:[]}", "tokens", "token_ids",
                                     "token_logprobs", "top_logprobs", "text_offset");
    json_t *all = answer->logprobs, *text = server_token_text(generation, token, &is_whole);
    json_array_append_new(json_object_get(all, "text_offset"), json_integer((json_int_t)answer->text_offset));
    answer->text_offset += json_string_length(text);
    json_array_append_new(json_object_get(all, "tokens"), text);
    json_array_append_new(json_object_get(all, "token_ids"), json_integer(token));
    json_array_append_new(json_object_get(all, "token_logprobs"), logprob);
    json_array_append_new(json_object_get(all, "top_logprobs"), top);
}

static void add_text_event(server_generation *generation, server_answer *answer, const server_event *event) {
    add_text_token(generation, answer, event->token, server_json_float(event->logprob),
                   event->top_logprobs > 0 ? top_json(generation, event) : json_null());
}

void server_add_text_logprobs(server_generation *generation, server_answer *answer,
                              const server_event *event) {
    server_add_echo_logprobs(generation, answer);
    if (generation->request.wants_logprobs)
        add_text_event(generation, answer, event);
}

/* ---- Of the prompt ------------------------------------------------------------------------------------- */

static server_event event_of(const server_score *score, uint32_t most) {
    return (server_event){.token = score->token,
                          .logprob = score->logprob,
                          .top_logprobs = score->top_count < most ? score->top_count : most,
                          .top_tokens = score->top_tokens,
                          .top_token_logprob = score->top_logprobs};
}

void server_add_echo_logprobs(server_generation *generation, server_answer *answer) {
    const server_request *request = &generation->request;
    const size_t prompt = answer->index / request->answers;
    if (answer->has_echoed || !request->wants_echo || !request->wants_logprobs)
        return;
    answer->has_echoed = true;
    add_text_token(generation, answer, generation->prompts.list[prompt].tokens[0], json_null(), json_null());
    const server_scores *scores = &generation->scores[prompt];
    for (size_t i = 0; i < scores->count; i++) {
        const server_event event = event_of(&scores->list[i], request->top_logprobs);
        add_text_event(generation, answer, &event);
    }
}

/* rank 0: it is not among the likeliest ones. */
static void add_ranked(server_generation *generation, json_t *object, int32_t token, float logprob,
                       uint32_t rank) {
    char id[16];
    bool is_whole;
    snprintf(id, sizeof id, "%d", (int)token);
    json_object_set_new(object, id,
                        json_pack("{s:o, s:o, s:o}", "logprob", server_json_float(logprob), "rank",
                                  rank > 0 ? json_integer(rank) : json_null(), "decoded_token",
                                  server_token_text(generation, token, &is_whole)));
}

/* The token itself comes first, as in vLLM. */
static json_t *score_json(server_generation *generation, const server_score *score) {
    json_t *object = json_object();
    const uint32_t wanted = generation->request.prompt_top_logprobs,
                   count = score->top_count < wanted ? score->top_count : wanted;
    add_ranked(generation, object, score->token, score->logprob, 0);
    for (uint32_t i = 0; i < count; i++)
        add_ranked(generation, object, score->top_tokens[i], score->top_logprobs[i], i + 1);
    return object;
}

void server_add_prompt_logprobs(server_generation *generation, size_t prompt, json_t *object) {
    if (!generation->request.wants_prompt_logprobs)
        return;
    json_t *list = json_pack("[n]");
    const server_scores *scores = &generation->scores[prompt];
    for (size_t i = 0; i < scores->count; i++)
        json_array_append_new(list, score_json(generation, &scores->list[i]));
    json_object_set_new(object, "prompt_logprobs", list);
}

json_t *server_unsent_logprobs(server_answer *answer) {
    json_t *taken = answer->logprobs;
    answer->logprobs = NULL;
    return taken ? taken : json_null();
}
