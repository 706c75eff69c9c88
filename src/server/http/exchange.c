/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/exchange.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BLOCK = 4096 };

const char *server_header(const server_exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

void server_add_header(server_exchange *exchange, const char *name, const char *value) {
    if (exchange->header_count == SERVER_HEADERS)
        return;
    exchange->headers[exchange->header_count].name = name;
    snprintf(exchange->headers[exchange->header_count++].value, sizeof exchange->headers[0].value, "%s",
             value);
}

int server_exchange_socket(const server_exchange *exchange) {
    return exchange->peer ? exchange->peer->socket : -1;
}

static void send_response(server_exchange *exchange, int status, const char *type,
                          struct MHD_Response *response) {
    if (!response)
        return;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < exchange->header_count; i++)
        MHD_add_response_header(response, exchange->headers[i].name, exchange->headers[i].value);
    if (exchange->is_ambiguous)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    exchange->status = status;
    server_peer_enter(exchange->peer, SERVER_SENDING);
    exchange->has_reply = MHD_queue_response(exchange->connection, (unsigned)status, response) == MHD_YES;
    MHD_destroy_response(response);
}

void server_reply(server_exchange *exchange, int status, const char *type, gb_byte_buffer *text) {
    if (text->failed) {
        static const char none[] = "{\"error\":{\"message\":\"no memory for the reply\"}}\n";
        gb_buffer_free(text);
        server_reply_constant(exchange, 503, "application/json", none, sizeof none - 1);
        return;
    }
    send_response(exchange, status, type,
                  MHD_create_response_from_buffer(text->size, text->text, MHD_RESPMEM_MUST_FREE));
    *text = (gb_byte_buffer){0};
}

void server_reply_constant(server_exchange *exchange, int status, const char *type, const char *bytes,
                           size_t length) {
    send_response(exchange, status, type,
                  MHD_create_response_from_buffer(length, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT));
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

typedef struct stream {
    server_source source;
    server_peer *peer;
    server_sender *sender;
    server_stream_state state;
    const char *bytes; /* that the source gave last */
    size_t length;
} stream;

static ssize_t end_of(server_stream_state state) {
    return state == SERVER_STREAM_ENDED ? MHD_CONTENT_READER_END_OF_STREAM
                                        : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Called when all before has been sent. */
static ssize_t read_stream(void *user, uint64_t position, char *bytes, size_t capacity) {
    (void)position;
    stream *s = user;
    if (s->sender)
        return end_of(server_sender_send(s->sender, &s->source, s->peer) ? SERVER_STREAM_ENDED
                                                                         : SERVER_STREAM_BROKEN);
    if (s->length == 0 && s->state == SERVER_STREAM_OPEN) {
        server_peer_enter(s->peer, SERVER_ANSWERING);
        s->state = s->source.read(s->source.user, true, &s->bytes, &s->length);
        server_peer_enter(s->peer, SERVER_SENDING);
    }
    const size_t taken = s->length < capacity ? s->length : capacity;
    if (taken == 0 || s->state == SERVER_STREAM_BROKEN)
        return end_of(s->state);
    memcpy(bytes, s->bytes, taken);
    s->bytes += taken;
    s->length -= taken;
    return (ssize_t)taken;
}

static void free_stream(void *user) {
    stream *s = user;
    s->source.free(s->source.user);
    free(s);
}

void server_reply_stream(server_exchange *exchange, const server_source *source) {
    stream *s = malloc(sizeof *s);
    if (!s) {
        source->free(source->user);
        return;
    }
    *s = (stream){.source = *source, .peer = exchange->peer, .sender = exchange->sender};
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, free_stream);
    if (!response)
        free_stream(s);
    server_add_header(exchange, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    server_add_header(exchange, "X-Accel-Buffering", "no");
    send_response(exchange, 200, "text/event-stream; charset=utf-8", response);
}
