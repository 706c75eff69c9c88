/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/responses: an answer is a list of items, and may be gone on from.
 */
#include "server/fields/tools.h"
#include "server/protocols/convert.h"
#include "server/protocols/protocol.h"

#include <string.h>

/* ---- Objects ------------------------------------------------------------------------------------------- */

static json_t *usage_json(const server_generation *generation) {
    const server_totals totals = server_count_tokens(generation);
    return json_pack("{s:I, s:{s:I}, s:I, s:{s:I}, s:I}", "input_tokens", (json_int_t)totals.prompt,
                     "input_tokens_details", "cached_tokens", (json_int_t)totals.cached, "output_tokens",
                     (json_int_t)totals.generated, "output_tokens_details", "reasoning_tokens",
                     (json_int_t)totals.reasoning, "total_tokens",
                     (json_int_t)(totals.prompt + totals.generated));
}

/* A field of the request as it came; otherwise a default, which is taken over. */
static void repeat_field(const server_generation *generation, json_t *response, const char *name,
                         json_t *otherwise) {
    json_t *given = json_object_get(generation->request.body, name);
    json_object_set(response, name, given ? given : otherwise);
    json_decref(otherwise);
}

static void add_settings(const server_generation *generation, json_t *response) {
    const gumbel_sampling *sampling = &generation->request.sampling;
    json_object_set_new(response, "temperature", server_json_float(sampling->temperature));
    json_object_set_new(response, "top_p", server_json_float(sampling->top_p));
    repeat_field(generation, response, "instructions", json_null());
    repeat_field(generation, response, "max_output_tokens", json_null());
    repeat_field(generation, response, "metadata", json_object());
    repeat_field(generation, response, "parallel_tool_calls", json_true());
    repeat_field(generation, response, "previous_response_id", json_null());
    repeat_field(generation, response, "reasoning", json_pack("{s:n, s:n}", "effort", "summary"));
    repeat_field(generation, response, "store", json_true());
    repeat_field(generation, response, "text", json_pack("{s:{s:s}}", "format", "type", "text"));
    repeat_field(generation, response, "tool_choice", json_string("auto"));
    repeat_field(generation, response, "tools", json_array());
    repeat_field(generation, response, "truncation", json_string("disabled"));
}

/* output is taken over. */
static json_t *response_json(const server_generation *generation, const char *status, json_t *output) {
    json_t *response = json_pack("{s:s, s:s, s:I, s:s, s:o, s:o, s:n, s:n, s:n}", "id", generation->id,
                                 "object", "response", "created_at", (json_int_t)generation->created,
                                 "status", status, "model", server_answering_model(generation), "output",
                                 output, "error", "incomplete_details", "usage");
    add_settings(generation, response);
    return response;
}

/* text is taken over. */
static json_t *call_json(const server_request *request, const char *id, const gumbel_reply_part *part,
                         json_t *text, const char *status) {
    const char *space, *name = part->name;
    const bool has_space = server_split_name(request, part->name, &space, &name);
    json_t *call =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:s}", "type", "function_call", "id", id, "call_id", part->id,
                  "name", has_space ? name : part->name, "arguments", text, "status", status);
    if (has_space)
        json_object_set_new(call, "namespace", json_string(space));
    return call;
}

/* An item of the output. part gives type, text, and of calls name and id. */
static json_t *item_json(const server_request *request, const char *id, const gumbel_reply_part *part,
                         const char *status) {
    json_t *text = server_json_text(part->text, part->text_length);
    if (part->type == GUMBEL_PART_REASONING)
        return json_pack("{s:s, s:s, s:[], s:[{s:s, s:o}], s:s}", "type", "reasoning", "id", id, "summary",
                         "content", "type", "reasoning_text", "text", text, "status", status);
    if (part->type == GUMBEL_PART_TOOL_CALL)
        return call_json(request, id, part, text, status);
    return json_pack("{s:s, s:s, s:s, s:[{s:s, s:o, s:[]}], s:s}", "type", "message", "id", id, "role",
                     "assistant", "content", "type", "output_text", "text", text, "annotations", "status",
                     status);
}

static const char *item_prefix(gumbel_part_type type) {
    return type == GUMBEL_PART_REASONING ? "rs_" : type == GUMBEL_PART_TOOL_CALL ? "fc_" : "msg_";
}

/* Keeps the response and the conversation up to it, without instructions; not what lacks a part for want of
 * memory, since a stream has told its id. */
static void keep(server_generation *generation, server_responses *responses, const json_t *response) {
    const server_request *request = &generation->request;
    if (!request->is_stored)
        return;
    gb_byte_buffer text = {0};
    if (gumbel_reply_message(generation->answers[0].reply, gb_buffer_write, &text, NULL) != GUMBEL_OK ||
        text.failed)
        server_json_fail();
    json_t *messages = json_deep_copy(request->messages);
    if (request->instructions)
        json_array_remove(messages, 0);
    json_array_append_new(messages,
                          json_loadb(text.size > 0 ? text.text : "", text.size, JSON_ALLOW_NUL, NULL));
    gb_buffer_free(&text);
    json_t *copy = json_deep_copy(response);
    if (!server_json_has_failed()) {
        server_responses_add(responses, generation->id, messages, copy);
        return;
    }
    json_decref(messages);
    json_decref(copy);
}

static bool is_cut(const server_generation *generation) {
    return strcmp(server_answer_finish(&generation->answers[0]), "length") == 0;
}

/* The response when the answer is whole. output is taken over. */
static json_t *finished_json(server_generation *generation, server_responses *responses, json_t *output) {
    json_t *response = response_json(generation, is_cut(generation) ? "incomplete" : "completed", output);
    if (is_cut(generation))
        json_object_set_new(response, "incomplete_details",
                            json_pack("{s:s}", "reason", "max_output_tokens"));
    json_object_set_new(response, "usage", usage_json(generation));
    server_add_report(generation, response);
    keep(generation, responses, response);
    return response;
}

/* ---- Whole --------------------------------------------------------------------------------------------- */

static json_t *whole(server_generation *generation, server_responses *responses) {
    json_t *output = json_array();
    gumbel_reply_part part = {.size = sizeof part};
    char id[SERVER_ID];
    for (size_t i = 0; gumbel_reply_get_part(generation->answers[0].reply, i, &part, NULL) == GUMBEL_OK; i++)
        if (part.text_length > 0)
            json_array_append_new(output,
                                  item_json(&generation->request, server_make_id(item_prefix(part.type), id),
                                            &part, "completed"));
    return finished_json(generation, responses, output);
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

/* fields are taken over. */
static void send_typed(server_stream *stream, const char *type, json_t *fields) {
    json_object_set_new(fields, "type", json_string(type));
    json_object_set_new(fields, "sequence_number", json_integer((json_int_t)stream->sequence++));
    server_send_event(stream, type, fields);
}

/* Fields of an event within the open item. */
static json_t *place_json(const server_stream *stream) {
    json_t *place =
        json_pack("{s:s, s:I}", "item_id", stream->block_id, "output_index", (json_int_t)stream->block);
    if (stream->part_type != GUMBEL_PART_TOOL_CALL)
        json_object_set_new(place, "content_index", json_integer(0));
    return place;
}

/* value is taken over. */
static void send_placed(server_stream *stream, const char *type, const char *name, json_t *value) {
    json_t *fields = place_json(stream);
    json_object_set_new(fields, name, value);
    if (strncmp(type, "response.output_text.", 21) == 0)
        json_object_set_new(fields, "logprobs", json_array());
    send_typed(stream, type, fields);
}

static void begin(server_stream *stream) {
    static const char *const types[] = {"response.created", "response.in_progress"};
    for (size_t i = 0; i < 2; i++)
        send_typed(
            stream, types[i],
            json_pack("{s:o}", "response", response_json(stream->generation, "in_progress", json_array())));
    stream->blocks = json_array();
}

static json_t *part_json(const server_stream *stream, json_t *text) {
    if (stream->part_type == GUMBEL_PART_REASONING)
        return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
    return json_pack("{s:s, s:o, s:[]}", "type", "output_text", "text", text, "annotations");
}

static json_t *block_text(const server_stream *stream) {
    return server_json_text(stream->block_text.text, stream->block_text.size);
}

static void end_item(server_stream *stream, json_t *item) {
    json_array_append(stream->blocks, item);
    send_typed(stream, "response.output_item.done",
               json_pack("{s:I, s:o}", "output_index", (json_int_t)stream->block, "item", item));
    stream->is_open = false;
    stream->block++;
}

static void close_block(server_stream *stream) {
    if (!stream->is_open)
        return;
    const bool is_thought = stream->part_type == GUMBEL_PART_REASONING;
    const gumbel_reply_part part = {.size = sizeof part,
                                    .type = stream->part_type,
                                    .text = stream->block_text.text,
                                    .text_length = stream->block_text.size};
    send_placed(stream, is_thought ? "response.reasoning_text.done" : "response.output_text.done", "text",
                block_text(stream));
    send_placed(stream, "response.content_part.done", "part", part_json(stream, block_text(stream)));
    end_item(stream, item_json(&stream->generation->request, stream->block_id, &part, "completed"));
}

static void open_item(server_stream *stream, const gumbel_reply_delta *delta, json_t *item) {
    stream->is_open = true;
    stream->part = delta->part;
    send_typed(stream, "response.output_item.added",
               json_pack("{s:I, s:o}", "output_index", (json_int_t)stream->block, "item", item));
}

static void set_type(server_stream *stream, gumbel_part_type type) {
    stream->part_type = type;
    server_make_id(item_prefix(type), stream->block_id);
}

/* An item of text begins empty, its content with it. */
static void open_block(server_stream *stream, const gumbel_reply_delta *delta) {
    const gumbel_reply_part empty = {.size = sizeof empty, .type = delta->type, .text = ""};
    set_type(stream, delta->type);
    json_t *item = item_json(&stream->generation->request, stream->block_id, &empty, "in_progress");
    json_array_clear(json_object_get(item, "content"));
    open_item(stream, delta, item);
    gb_buffer_clear(&stream->block_text);
    send_placed(stream, "response.content_part.added", "part", part_json(stream, json_string("")));
}

/* A call comes whole. */
static void emit_call(server_stream *stream, const gumbel_reply_delta *delta) {
    gumbel_reply_part part = {
        .size = sizeof part, .type = delta->type, .id = delta->id, .name = delta->name, .text = ""};
    set_type(stream, delta->type);
    open_item(stream, delta, item_json(&stream->generation->request, stream->block_id, &part, "in_progress"));
    part.text = delta->text;
    part.text_length = delta->text_length;
    send_placed(stream, "response.function_call_arguments.delta", "delta",
                server_json_text(part.text, part.text_length));
    json_t *fields = place_json(stream);
    const char *space, *name;
    json_object_set_new(
        fields, "name",
        json_string(server_split_name(&stream->generation->request, delta->name, &space, &name)
                        ? name
                        : delta->name));
    json_object_set_new(fields, "arguments", server_json_text(part.text, part.text_length));
    send_typed(stream, "response.function_call_arguments.done", fields);
    end_item(stream, item_json(&stream->generation->request, stream->block_id, &part, "completed"));
}

static void emit_delta(void *user, server_answer *answer, const gumbel_reply_delta *delta) {
    (void)answer;
    server_stream *stream = user;
    if (delta->text_length == 0)
        return;
    const bool goes_on = stream->is_open && stream->part == delta->part;
    if (!goes_on)
        close_block(stream);
    if (delta->type == GUMBEL_PART_TOOL_CALL) {
        emit_call(stream, delta);
        return;
    }
    if (!goes_on)
        open_block(stream, delta);
    gb_buffer_append(&stream->block_text, delta->text, delta->text_length);
    send_placed(stream,
                delta->type == GUMBEL_PART_REASONING ? "response.reasoning_text.delta"
                                                     : "response.output_text.delta",
                "delta", server_json_text(delta->text, delta->text_length));
}

static void emit_finish(void *user, server_answer *answer) {
    (void)answer;
    close_block(user);
}

static void end(server_stream *stream) {
    json_t *response = finished_json(stream->generation, stream->responses, json_incref(stream->blocks));
    send_typed(stream, is_cut(stream->generation) ? "response.incomplete" : "response.completed",
               json_pack("{s:o}", "response", response));
}

static void fail(server_stream *stream, const server_failure *failure) {
    json_t *response = response_json(stream->generation, "failed", json_incref(stream->blocks));
    json_object_set_new(response, "error",
                        json_pack("{s:s, s:o}", "code", "server_error", "message",
                                  server_json_text(failure->message, strlen(failure->message))));
    send_typed(stream, "response.failed", json_pack("{s:o}", "response", response));
}

const server_protocol server_responses_api = {
    .route = SERVER_RESPONSES,
    .id_prefix = "resp_",
    .ping = ": ping\n\n",
    .prepare = server_convert_input,
    .whole = whole,
    .begin = begin,
    .emit = {NULL, NULL, emit_delta, emit_finish},
    .end = end,
    .fail = fail,
    .error = server_openai_error,
};
