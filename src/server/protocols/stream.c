/* SPDX-License-Identifier: Apache-2.0
 *
 * From a generation to the bytes of a reply.
 */
#include "server/protocols/protocol.h"

#include <stdlib.h>
#include <string.h>

enum { PING_MILLISECONDS = 15000 };

void server_send_event(server_stream *stream, const char *name, json_t *data) {
    if (name)
        server_text_print(&stream->output, "event: %s\n", name);
    server_text_add_string(&stream->output, "data: ");
    server_print_json(&stream->output, data);
    server_text_add_string(&stream->output, "\n\n");
    json_decref(data);
}

json_t *server_openai_error(const server_failure *failure) {
    json_t *error = json_pack(
        "{s:o, s:s, s:o, s:o}", "message", server_json_text(failure->message, strlen(failure->message)),
        "type", failure->type, "param", failure->param[0] ? json_string(failure->param) : json_null(), "code",
        failure->code ? json_string(failure->code) : json_null());
    return json_pack("{s:o}", "error", error);
}

json_t *server_answering_model(const server_generation *generation) {
    char id[SERVER_MODEL_ID];
    return json_string(generation->request.model ? generation->request.model
                                                 : server_model_id(generation->model, id));
}

/* ---- Reading a stream ---------------------------------------------------------------------------------- */

static void begin(server_stream *stream) {
    if (!stream->has_begun)
        stream->protocol->begin(stream);
    stream->has_begun = true;
}

static void end(server_stream *stream) {
    server_failure failure;
    if (server_generation_failure(stream->generation, &failure))
        stream->protocol->fail(stream, &failure);
    else
        stream->protocol->end(stream);
    stream->has_ended = true;
}

static void count(atomic_ullong *counter) {
    atomic_fetch_add(counter, 1);
}

/* Waits for the next event and writes what it brings. False: the stream breaks. */
static bool advance(server_stream *stream) {
    server_generation *generation = stream->generation;
    server_sink sink = stream->protocol->tell;
    sink.user = stream;
    begin(stream);
    switch (server_generation_step(generation, stream->socket, PING_MILLISECONDS, &sink)) {
    case SERVER_QUIET:
        server_text_add_string(&stream->output, stream->protocol->ping);
        return true;
    case SERVER_LEFT:
    case SERVER_OVERFLOWED:
        return false;
    case SERVER_TAKEN:
        break;
    }
    if (generation->open_answers == 0)
        end(stream);
    return !stream->output.has_failed;
}

static ssize_t read_stream(void *user, char *bytes, size_t capacity) {
    server_stream *stream = user;
    while (stream->at == stream->output.length) {
        if (stream->has_ended)
            return SERVER_STREAM_END;
        server_text_clear(&stream->output);
        stream->at = 0;
        if (!advance(stream))
            return SERVER_STREAM_BROKEN;
    }
    const size_t left = stream->output.length - stream->at, size = left < capacity ? left : capacity;
    memcpy(bytes, stream->output.bytes + stream->at, size);
    stream->at += size;
    return (ssize_t)size;
}

static void free_generation(server_generation *generation) {
    server_generation_free(generation);
    free(generation);
}

static void free_stream(void *user) {
    server_stream *stream = user;
    server_metrics *metrics = stream->generation->metrics;
    if (!stream->has_ended)
        count(stream->generation->run.has_overflowed ? &metrics->slow_readers : &metrics->disconnects);
    free_generation(stream->generation);
    server_text_free(&stream->head);
    server_text_free(&stream->output);
    server_text_free(&stream->block_text);
    json_decref(stream->blocks);
    free(stream);
}

/* ---- Replying ------------------------------------------------------------------------------------------ */

static void reply_json(server_exchange *exchange, int status, json_t *value) {
    server_text text = {0};
    server_print_json(&text, value);
    server_text_add_string(&text, "\n");
    json_decref(value);
    server_reply(exchange, status, "application/json", &text);
}

static void reply_failure(server_exchange *exchange, const server_protocol *protocol,
                          const server_failure *failure) {
    reply_json(exchange, failure->status, protocol->error(failure));
}

/* The first event is awaited, so that what fails at once has its own status. */
static void tell_stream(server_exchange *exchange, const server_protocol *protocol,
                        server_generation *generation, server_responses *responses) {
    server_stream *stream = calloc(1, sizeof *stream);
    server_failure failure = {.status = 503, .type = "server_error", .message = "no memory for the stream"};
    if (!stream) {
        free_generation(generation);
        reply_failure(exchange, protocol, &failure);
        return;
    }
    *stream = (server_stream){.generation = generation,
                              .protocol = protocol,
                              .responses = responses,
                              .socket = server_exchange_socket(exchange)};
    const bool goes_on = advance(stream);
    if (stream->has_ended && server_generation_failure(generation, &failure) &&
        generation->answer_count == 1 && generation->answers[0].tokens == 0) {
        free_stream(stream);
        reply_failure(exchange, protocol, &failure);
    } else if (goes_on) {
        const server_source source = {read_stream, free_stream, stream};
        server_reply_stream(exchange, &source);
    } else {
        free_stream(stream); /* without a reply the connection ends */
    }
}

static void tell_whole(server_exchange *exchange, const server_protocol *protocol,
                       server_generation *generation, server_responses *responses) {
    server_failure failure;
    server_sink sink = protocol->collect;
    sink.user = generation;
    if (server_generation_finish(generation, server_exchange_socket(exchange), &sink, &failure))
        reply_json(exchange, 200, protocol->whole(generation, responses));
    else if (failure.status != 0)
        reply_failure(exchange, protocol, &failure);
    else
        count(&generation->metrics->disconnects);
    free_generation(generation);
}

void server_tell(server_exchange *exchange, const server_protocol *protocol, server_generation *generation,
                 server_responses *responses) {
    if (generation->request.is_stream)
        tell_stream(exchange, protocol, generation, responses);
    else
        tell_whole(exchange, protocol, generation, responses);
}
