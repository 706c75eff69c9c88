/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/exchange.h"

#include "server/http/transport.h"

#include <microhttpd.h>
#include <stdio.h>

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

void server_add_retry(server_exchange *exchange, const server_failure *failure) {
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%d", failure->retry_seconds);
    if (failure->retry_seconds > 0)
        server_add_header(exchange, "Retry-After", seconds);
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

/* In place of a reply that there is no memory for. */
static void reply_without_memory(server_exchange *exchange) {
    static const char none[] = "{\"error\":{\"message\":\"no memory for the reply\"}}\n";
    server_reply_constant(exchange, 503, "application/json", none, sizeof none - 1);
}

void server_reply(server_exchange *exchange, int status, const char *type, gb_byte_buffer *text) {
    if (text->failed) {
        gb_buffer_free(text);
        reply_without_memory(exchange);
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

void server_reply_json(server_exchange *exchange, int status, json_t *value) {
    gb_byte_buffer text = {0};
    server_print_json(&text, value);
    gb_buffer_append_string(&text, "\n");
    json_decref(value);
    text.failed |= server_json_has_failed();
    server_reply(exchange, status, "application/json", &text);
}

void server_reply_stream(server_exchange *exchange, const server_source *source) {
    server_add_header(exchange, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    server_add_header(exchange, "X-Accel-Buffering", "no");
    send_response(exchange, 200, "text/event-stream; charset=utf-8",
                  server_stream_response(source, exchange->sender, exchange->peer, exchange->version));
}
