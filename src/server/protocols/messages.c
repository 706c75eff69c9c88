/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/messages, Anthropic's API: an answer is a list of blocks.
 */
#include "server/protocols/convert.h"
#include "server/protocols/protocol.h"

#include <string.h>

static json_t *usage_json(const server_generation *generation, bool is_whole) {
    const server_totals totals = server_count_tokens(generation);
    const uint64_t cached = is_whole ? totals.cached : 0;
    return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)(totals.prompt - cached),
                     "cache_creation_input_tokens", (json_int_t)0, "cache_read_input_tokens",
                     (json_int_t)cached, "output_tokens", (json_int_t)totals.generated);
}

static json_t *message_json(const server_generation *generation) {
    return json_pack("{s:s, s:s, s:s, s:o, s:[], s:n, s:n}", "id", generation->id, "type", "message", "role",
                     "assistant", "model", server_answering_model(generation), "content", "stop_reason",
                     "stop_sequence");
}

static const char *stop_reason(const server_answer *answer) {
    const char *finish = server_answer_finish(answer);
    return answer->finish == GUMBEL_FINISH_STOP_STRING ? "stop_sequence"
           : strcmp(finish, "tool_calls") == 0         ? "tool_use"
           : strcmp(finish, "length") == 0             ? "max_tokens"
                                                       : "end_turn";
}

static json_t *stop_sequence(const server_generation *generation) {
    const int32_t index = generation->answers[0].stop_string;
    return index < 0 ? json_null() : json_string(generation->request.stops[index]);
}

/* ---- Whole --------------------------------------------------------------------------------------------- */

static json_t *block_json(const gumbel_reply_part *part) {
    json_t *text = server_json_text(part->text, part->text_length);
    if (part->type == GUMBEL_PART_REASONING)
        return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", text, "signature", "");
    if (part->type != GUMBEL_PART_TOOL_CALL)
        return json_pack("{s:s, s:o}", "type", "text", "text", text);
    json_decref(text);
    return json_pack("{s:s, s:s, s:s, s:o?}", "type", "tool_use", "id", part->id, "name", part->name, "input",
                     json_loadb(part->text, part->text_length, JSON_ALLOW_NUL, NULL));
}

static json_t *whole(server_generation *generation, server_responses *responses) {
    (void)responses;
    json_t *message = message_json(generation), *content = json_object_get(message, "content");
    const server_answer *answer = &generation->answers[0];
    gumbel_reply_part part = {.size = sizeof part};
    for (size_t i = 0; gumbel_reply_get_part(answer->reply, i, &part, NULL) == GUMBEL_OK; i++)
        if (part.text_length > 0)
            json_array_append_new(content, block_json(&part));
    json_object_set_new(message, "stop_reason", json_string(stop_reason(answer)));
    json_object_set_new(message, "stop_sequence", stop_sequence(generation));
    json_object_set_new(message, "usage", usage_json(generation, true));
    server_add_report(generation, message);
    return message;
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

static void begin(server_stream *stream) {
    json_t *message = message_json(stream->generation);
    json_object_set_new(message, "usage", usage_json(stream->generation, false));
    server_send_event(stream, "message_start",
                      json_pack("{s:s, s:o}", "type", "message_start", "message", message));
}

static void close_block(server_stream *stream) {
    if (!stream->is_open)
        return;
    server_send_event(
        stream, "content_block_stop",
        json_pack("{s:s, s:I}", "type", "content_block_stop", "index", (json_int_t)stream->block));
    stream->is_open = false;
    stream->block++;
}

static json_t *empty_block(const gumbel_reply_delta *delta) {
    if (delta->type == GUMBEL_PART_TOOL_CALL)
        return json_pack("{s:s, s:s, s:s, s:{}}", "type", "tool_use", "id", delta->id, "name", delta->name,
                         "input");
    if (delta->type == GUMBEL_PART_REASONING)
        return json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", "");
    return json_pack("{s:s, s:s}", "type", "text", "text", "");
}

static void open_block(server_stream *stream, const gumbel_reply_delta *delta) {
    if (stream->is_open && stream->part == delta->part)
        return;
    close_block(stream);
    stream->is_open = true;
    stream->part = delta->part;
    server_send_event(stream, "content_block_start",
                      json_pack("{s:s, s:I, s:o}", "type", "content_block_start", "index",
                                (json_int_t)stream->block, "content_block", empty_block(delta)));
}

static json_t *delta_json(const gumbel_reply_delta *delta) {
    json_t *text = server_json_text(delta->text, delta->text_length);
    if (delta->type == GUMBEL_PART_TOOL_CALL)
        return json_pack("{s:s, s:o}", "type", "input_json_delta", "partial_json", text);
    if (delta->type == GUMBEL_PART_REASONING)
        return json_pack("{s:s, s:o}", "type", "thinking_delta", "thinking", text);
    return json_pack("{s:s, s:o}", "type", "text_delta", "text", text);
}

static void emit_delta(void *user, server_answer *answer, const gumbel_reply_delta *delta) {
    (void)answer;
    server_stream *stream = user;
    if (delta->text_length == 0)
        return;
    open_block(stream, delta);
    server_send_event(stream, "content_block_delta",
                      json_pack("{s:s, s:I, s:o}", "type", "content_block_delta", "index",
                                (json_int_t)stream->block, "delta", delta_json(delta)));
}

static void emit_finish(void *user, server_answer *answer) {
    (void)answer;
    close_block(user);
}

static void end(server_stream *stream) {
    const server_generation *generation = stream->generation;
    json_t *delta = json_pack("{s:s, s:o}", "stop_reason", stop_reason(&generation->answers[0]),
                              "stop_sequence", stop_sequence(generation));
    json_t *event = json_pack("{s:s, s:o, s:o}", "type", "message_delta", "delta", delta, "usage",
                              usage_json(generation, true));
    server_add_report(generation, event);
    server_send_event(stream, "message_delta", event);
    server_send_event(stream, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

static const char *error_type(const server_failure *failure) {
    return failure->status == 413   ? "request_too_large"
           : failure->status == 503 ? "overloaded_error"
           : failure->status >= 500 ? "api_error"
                                    : failure->type;
}

static json_t *error(const server_failure *failure) {
    return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", error_type(failure), "message",
                     server_json_text(failure->message, strlen(failure->message)));
}

static void fail(server_stream *stream, const server_failure *failure) {
    server_send_event(stream, "error", error(failure));
}

const server_protocol server_messages_api = {
    .route = SERVER_MESSAGES,
    .id_prefix = "msg_",
    .ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    .prepare = server_convert_messages,
    .whole = whole,
    .begin = begin,
    .emit = {NULL, NULL, emit_delta, emit_finish},
    .end = end,
    .fail = fail,
    .error = error,
};
