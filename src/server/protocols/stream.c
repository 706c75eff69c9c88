/* SPDX-License-Identifier: Apache-2.0
 *
 * From a generation to the bytes of a reply.
 */
#include "server/protocols/protocol.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { PING_MILLISECONDS = 15000 };

void server_send_event(server_stream *stream, const char *name, json_t *data) {
    if (name)
        gb_buffer_print(&stream->output, "event: %s\n", name);
    gb_buffer_append_string(&stream->output, "data: ");
    server_print_json(&stream->output, data);
    gb_buffer_append_string(&stream->output, "\n\n");
    json_decref(data);
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

static void ping(server_stream *stream) {
    gb_buffer_append_string(&stream->output, stream->protocol->ping);
    stream->last_output = gb_seconds();
}

/* Writes what the next event brings, if there is one within that time. False: the stream breaks. */
static bool advance(server_stream *stream, int socket, int milliseconds, bool *is_quiet) {
    server_generation *generation = stream->generation;
    server_sink sink = stream->protocol->emit;
    sink.user = stream;
    begin(stream);
    const server_taken taken = server_generation_step(generation, socket, milliseconds, &sink);
    *is_quiet = taken == SERVER_QUIET;
    if (taken == SERVER_LEFT || taken == SERVER_OVERFLOWED)
        return false;
    if (generation->open_answers == 0 && !stream->has_ended)
        end(stream);
    return !stream->output.failed && !server_json_has_failed();
}

static server_stream_state read_stream(void *user, const char **bytes, size_t *length) {
    server_stream *stream = user;
    bool is_quiet = false;
    server_json_forget();
    if (!stream->is_unread)
        gb_buffer_clear(&stream->output);
    stream->is_unread = false;
    while (!stream->has_ended && !is_quiet)
        if (!advance(stream, -1, 0, &is_quiet))
            return SERVER_STREAM_BROKEN;
    if (stream->output.size > 0)
        stream->last_output = gb_seconds();
    else if (!stream->has_ended && gb_seconds() - stream->last_output > 1e-3 * PING_MILLISECONDS)
        ping(stream);
    *bytes = stream->output.text;
    *length = stream->output.size;
    return stream->has_ended ? SERVER_STREAM_ENDED : SERVER_STREAM_OPEN;
}

static void listen_to(void *user, int (*wake)(void *waker), void *waker) {
    server_run_listen(&((server_stream *)user)->generation->run, wake, waker);
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
    gb_buffer_free(&stream->head);
    gb_buffer_free(&stream->output);
    gb_buffer_free(&stream->block_text);
    json_decref(stream->blocks);
    free(stream);
}

/* ---- Replying ------------------------------------------------------------------------------------------ */

static void reply_failure(server_exchange *exchange, const server_protocol *protocol,
                          const server_failure *failure) {
    server_add_retry(exchange, failure);
    server_reply_json(exchange, failure->status, protocol->error(failure));
}

/* The first event is awaited, so that what fails at once has its own status. */
static void send_stream(server_exchange *exchange, const server_protocol *protocol,
                        server_generation *generation, server_responses *responses) {
    server_stream *stream = calloc(1, sizeof *stream);
    server_failure failure = {.status = 503, .type = "server_error", .message = "no memory for the stream"};
    if (!stream) {
        free_generation(generation);
        reply_failure(exchange, protocol, &failure);
        return;
    }
    *stream = (server_stream){.generation = generation, .protocol = protocol, .responses = responses};
    bool is_quiet;
    const bool goes_on = advance(stream, server_exchange_socket(exchange), PING_MILLISECONDS, &is_quiet);
    stream->is_unread = true;
    stream->last_output = gb_seconds();
    if (goes_on && is_quiet)
        ping(stream);
    if (stream->has_ended && server_generation_failure(generation, &failure) &&
        generation->answer_count == 1 && generation->answers[0].tokens == 0) {
        free_stream(stream);
        reply_failure(exchange, protocol, &failure);
    } else if (goes_on) {
        const server_source source = {read_stream, listen_to, free_stream, stream};
        server_reply_stream(exchange, &source);
    } else if (stream->output.failed || server_json_has_failed() || generation->run.has_overflowed) {
        free_stream(stream);
        reply_failure(exchange, protocol, &failure);
    } else {
        free_stream(stream); /* without a reply the connection ends */
    }
}

static void send_whole(server_exchange *exchange, const server_protocol *protocol,
                       server_generation *generation, server_responses *responses) {
    server_failure failure;
    server_sink sink = protocol->collect;
    sink.user = generation;
    if (server_generation_finish(generation, server_exchange_socket(exchange), &sink, &failure))
        server_reply_json(exchange, 200, protocol->whole(generation, responses));
    else if (failure.status != 0)
        reply_failure(exchange, protocol, &failure);
    else
        count(&generation->metrics->disconnects);
    free_generation(generation);
}

void server_send_answer(server_exchange *exchange, const server_protocol *protocol,
                        server_generation *generation, server_responses *responses) {
    if (generation->request.is_stream)
        send_stream(exchange, protocol, generation, responses);
    else
        send_whole(exchange, protocol, generation, responses);
}
