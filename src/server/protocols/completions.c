/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/completions.
 */
#include "server/protocols/openai.h"

#define OBJECT "text_completion"

/* The prompt of an answer, where it is echoed. */
static void add_echo(const server_generation *generation, const server_answer *answer, gb_byte_buffer *text) {
    const server_prompt *prompt = &generation->prompts.list[answer->index / generation->request.answers];
    server_failure failure;
    if (generation->request.wants_echo)
        server_decode_tokens(generation->model, prompt->tokens, prompt->count, false, text, &failure);
}

static json_t *text_json(const gb_byte_buffer *text) {
    return server_json_text(text->text, text->size);
}

/* ---- Whole --------------------------------------------------------------------------------------------- */

static void collect_token(void *user, server_answer *answer, const server_event *event) {
    server_add_text_logprobs(user, answer, event);
}

static void collect_delta(void *user, server_answer *answer, const gumbel_reply_delta *delta) {
    (void)user;
    gb_buffer_append(&answer->text, delta->text, delta->text_length);
}

static json_t *choice_json(server_generation *generation, server_answer *answer) {
    gb_byte_buffer text = {0};
    server_add_echo_logprobs(generation, answer);
    add_echo(generation, answer, &text);
    gb_buffer_append(&text, answer->text.text, answer->text.size);
    json_t *choice = json_pack("{s:i, s:o, s:o, s:s, s:o}", "index", (int)answer->index, "text",
                               text_json(&text), "logprobs", server_unsent_logprobs(answer), "finish_reason",
                               server_answer_finish(answer), "seed", server_json_seed(answer->seed));
    gb_buffer_free(&text);
    server_add_prompt_logprobs(generation, answer->index / generation->request.answers, choice);
    return choice;
}

static json_t *whole(server_generation *generation, server_responses *responses) {
    (void)responses;
    json_t *object = server_openai_object(generation, OBJECT), *choices = json_array();
    for (size_t i = 0; i < generation->answer_count; i++)
        json_array_append_new(choices, choice_json(generation, &generation->answers[i]));
    json_object_set_new(object, "choices", choices);
    json_object_set_new(object, "usage", server_openai_usage(generation));
    server_add_report(generation, object);
    return object;
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

static void send_text(server_stream *stream, server_answer *answer, json_t *text, bool is_finished) {
    server_openai_chunk(stream, OBJECT, answer, "text", text, is_finished);
}

static void begin(server_stream *stream) {
    for (size_t i = 0; i < stream->generation->answer_count && stream->generation->request.wants_echo; i++) {
        gb_byte_buffer text = {0};
        add_echo(stream->generation, &stream->generation->answers[i], &text);
        server_add_echo_logprobs(stream->generation, &stream->generation->answers[i]);
        send_text(stream, &stream->generation->answers[i], text_json(&text), false);
        gb_buffer_free(&text);
    }
}

static void emit_token(void *user, server_answer *answer, const server_event *event) {
    server_stream *stream = user;
    server_add_text_logprobs(stream->generation, answer, event);
}

static void emit_delta(void *user, server_answer *answer, const gumbel_reply_delta *delta) {
    server_openai_text_chunk(user, OBJECT, answer, "text", NULL, delta->text, delta->text_length);
}

static void emit_finish(void *user, server_answer *answer) {
    if (answer->status == GUMBEL_OK)
        send_text(user, answer, json_string(""), true);
}

static void end(server_stream *stream) {
    server_openai_end(stream, OBJECT);
}

const server_protocol server_completions = {
    .route = SERVER_COMPLETIONS,
    .id_prefix = "cmpl-",
    .ping = SERVER_OPENAI_PING,
    .collect = {.token = collect_token, .delta = collect_delta},
    .whole = whole,
    .begin = begin,
    .emit = {NULL, emit_token, emit_delta, emit_finish},
    .end = end,
    .fail = server_openai_fail,
    .error = server_openai_error,
};
