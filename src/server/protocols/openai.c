/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocols/openai.h"

#include <inttypes.h>

json_t *server_openai_object(const server_generation *generation, const char *type) {
    char fingerprint[SERVER_FINGERPRINT];
    return json_pack("{s:s, s:s, s:I, s:o, s:s}", "id", generation->id, "object", type, "created",
                     (json_int_t)generation->created, "model", server_answering_model(generation),
                     "system_fingerprint", server_model_fingerprint(generation->model, fingerprint));
}

json_t *server_openai_usage(const server_generation *generation) {
    const server_totals totals = server_count_tokens(generation);
    json_t *usage = json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", "prompt_tokens", (json_int_t)totals.prompt,
                              "completion_tokens", (json_int_t)totals.generated, "total_tokens",
                              (json_int_t)(totals.prompt + totals.generated), "prompt_tokens_details",
                              "cached_tokens", (json_int_t)totals.cached, "completion_tokens_details",
                              "reasoning_tokens", (json_int_t)totals.reasoning);
    json_t *details = json_object_get(usage, "completion_tokens_details");
    if (generation->request.has_prediction && details) {
        json_object_set_new(details, "accepted_prediction_tokens", json_integer((json_int_t)totals.accepted));
        json_object_set_new(details, "rejected_prediction_tokens",
                            json_integer((json_int_t)(totals.drafted - totals.accepted)));
    }
    return usage;
}

/* Appends the members of an object, which is taken over, without its braces. */
static void print_members(gb_byte_buffer *text, json_t *object) {
    const size_t begin = text->size;
    server_print_json(text, object);
    json_decref(object);
    if (text->failed)
        return;
    text->text[begin] = ' '; /* in place of { */
    text->size--;
}

/* What all chunks begin with is made once: a token's chunk costs as little as its own part. */
static void print_head(server_stream *stream, const char *type) {
    gb_buffer_append_string(&stream->output, "data: {");
    if (stream->head.size == 0)
        print_members(&stream->head, server_openai_object(stream->generation, type));
    gb_buffer_append(&stream->output, stream->head.text, stream->head.size);
    stream->output.failed |= stream->head.failed;
}

static void print_value(gb_byte_buffer *text, json_t *value) {
    server_print_json(text, value);
    json_decref(value);
}

static void print_finish(gb_byte_buffer *text, const server_answer *answer, bool is_finished) {
    if (is_finished)
        gb_buffer_print(text, "\"%s\",\"seed\":\"%" PRIu64 "\"", server_answer_finish(answer), answer->seed);
    else
        gb_buffer_append_string(text, "null");
}

static void begin_chunk(server_stream *stream, const char *type, const server_answer *answer,
                        const char *name) {
    print_head(stream, type);
    gb_buffer_print(&stream->output, ",\"choices\":[{\"index\":%u,\"%s\":", answer->index, name);
}

/* Of the tokens so far. */
static void print_usage(gb_byte_buffer *text, const server_generation *generation) {
    const server_totals totals = server_count_tokens(generation);
    gb_buffer_print(text,
                    "{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
                    ",\"total_tokens\":%" PRIu64 "}",
                    totals.prompt, totals.generated, totals.prompt + totals.generated);
}

/* The scheduler sends the prompt's part and times with an answer's last event; until then times count from
 * the first chunk. */
static void print_timings(server_stream *stream, const server_answer *answer) {
    const server_totals totals = server_count_tokens(stream->generation);
    if (stream->first_tokens == 0 && totals.generated > 0) {
        stream->first_tokens = totals.generated;
        stream->first_time = answer->last_time;
    }
    const double seconds = totals.generated > 0 ? answer->last_time - stream->first_time : 0;
    gb_buffer_print(&stream->output, ",\"timings\":{\"predicted_n\":%" PRIu64 ",\"predicted_ms\":%.3f",
                    totals.generated, 1e3 * seconds);
    if (seconds > 0)
        gb_buffer_print(&stream->output, ",\"predicted_per_second\":%.3f",
                        (double)(totals.generated - stream->first_tokens) / seconds);
    gb_buffer_append_string(&stream->output, "}");
}

static void print_report(server_stream *stream) {
    json_t *report = json_object();
    server_add_report(stream->generation, report);
    gb_buffer_append_string(&stream->output, ",");
    print_members(&stream->output, report);
}

/* What stands behind the choice: usage and timings so far, or with the last one the report. */
static void end_members(server_stream *stream, const server_answer *answer, bool is_finished) {
    const server_request *request = &stream->generation->request;
    if (request->wants_usage)
        gb_buffer_append_string(&stream->output, ",\"usage\":");
    if (request->wants_all_usage)
        print_usage(&stream->output, stream->generation);
    else if (request->wants_usage)
        gb_buffer_append_string(&stream->output, "null");
    if (is_finished && stream->generation->open_answers <= 1 && !request->wants_usage)
        print_report(stream);
    else if (request->wants_all_timings)
        print_timings(stream, answer);
}

static void end_chunk(server_stream *stream, server_answer *answer, bool is_finished) {
    gb_byte_buffer *output = &stream->output;
    gb_buffer_append_string(output, ",\"logprobs\":");
    if (answer->logprobs)
        print_value(output, server_unsent_logprobs(answer));
    else
        gb_buffer_append_string(output, "null");
    gb_buffer_append_string(output, ",\"finish_reason\":");
    print_finish(output, answer, is_finished);
    gb_buffer_append_string(output, "}]");
    end_members(stream, answer, is_finished);
    gb_buffer_append_string(output, "}\n\n");
}

void server_openai_chunk(server_stream *stream, const char *type, server_answer *answer, const char *name,
                         json_t *value, bool is_finished) {
    begin_chunk(stream, type, answer, name);
    print_value(&stream->output, value);
    end_chunk(stream, answer, is_finished);
}

void server_openai_text_chunk(server_stream *stream, const char *type, server_answer *answer,
                              const char *name, const char *field, const char *text, size_t length) {
    gb_byte_buffer *output = &stream->output;
    begin_chunk(stream, type, answer, name);
    if (field)
        gb_buffer_print(output, "{\"%s\":", field);
    server_print_text(output, text, length);
    if (field)
        gb_buffer_append_string(output, "}");
    end_chunk(stream, answer, false);
}

void server_openai_end(server_stream *stream, const char *type) {
    if (stream->generation->request.wants_usage) {
        json_t *chunk = server_openai_object(stream->generation, type);
        json_object_set_new(chunk, "choices", json_array());
        json_object_set_new(chunk, "usage", server_openai_usage(stream->generation));
        server_add_report(stream->generation, chunk);
        server_send_event(stream, NULL, chunk);
    }
    gb_buffer_append_string(&stream->output, "data: [DONE]\n\n");
}

void server_openai_fail(server_stream *stream, const server_failure *failure) {
    server_send_event(stream, NULL, server_openai_error(failure));
    gb_buffer_append_string(&stream->output, "data: [DONE]\n\n");
}
