/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocols/openai.h"

json_t *server_openai_object(const server_generation *generation, const char *type) {
    char fingerprint[SERVER_FINGERPRINT];
    return json_pack("{s:s, s:s, s:I, s:o, s:s}", "id", generation->id, "object", type, "created",
                     (json_int_t)generation->created, "model", server_answering_model(generation),
                     "system_fingerprint", server_model_fingerprint(generation->model, fingerprint));
}

json_t *server_openai_usage(const server_generation *generation) {
    const server_totals totals = server_count_tokens(generation);
    return json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", "prompt_tokens", (json_int_t)totals.prompt,
                     "completion_tokens", (json_int_t)totals.generated, "total_tokens",
                     (json_int_t)(totals.prompt + totals.generated), "prompt_tokens_details", "cached_tokens",
                     (json_int_t)totals.cached, "completion_tokens_details", "reasoning_tokens",
                     (json_int_t)totals.reasoning);
}

void server_openai_chunk(server_stream *stream, const char *type, server_answer *answer, json_t *choice,
                         bool is_finished) {
    server_generation *generation = stream->generation;
    json_t *chunk = server_openai_object(generation, type);
    json_object_set_new(choice, "index", json_integer(answer->index));
    json_object_set_new(choice, "logprobs", server_told_logprobs(answer));
    json_object_set_new(choice, "finish_reason",
                        is_finished ? json_string(server_answer_finish(answer)) : json_null());
    if (is_finished)
        json_object_set_new(choice, "seed", server_json_seed(answer->seed));
    json_object_set_new(chunk, "choices", json_pack("[o]", choice));
    if (generation->request.wants_usage)
        json_object_set_new(chunk, "usage", json_null());
    if (is_finished && generation->open_answers <= 1 && !generation->request.wants_usage)
        server_add_report(generation, chunk);
    server_send_event(stream, NULL, chunk);
}

void server_openai_end(server_stream *stream, const char *type) {
    if (stream->generation->request.wants_usage) {
        json_t *chunk = server_openai_object(stream->generation, type);
        json_object_set_new(chunk, "choices", json_array());
        json_object_set_new(chunk, "usage", server_openai_usage(stream->generation));
        server_add_report(stream->generation, chunk);
        server_send_event(stream, NULL, chunk);
    }
    server_text_add_string(&stream->output, "data: [DONE]\n\n");
}

void server_openai_fail(server_stream *stream, const server_failure *failure) {
    server_send_event(stream, NULL, server_openai_error(failure));
    server_text_add_string(&stream->output, "data: [DONE]\n\n");
}
