/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/listener.h"

#include "server/base/clock.h"
#include "server/http/framing.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_BYTES = 32 * 1024, STACK_BYTES = 1024 * 1024 };

/* ---- Requests ------------------------------------------------------------------------------------------ */

/* The first that is known of a request: its first line. */
static void *begin_request(void *user, const char *uri, struct MHD_Connection *connection) {
    (void)user, (void)uri;
    server_exchange *exchange = calloc(1, sizeof *exchange);
    const union MHD_ConnectionInfo *information =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (!exchange)
        return NULL;
    exchange->connection = connection;
    exchange->peer = information ? information->socket_context : NULL;
    exchange->begin = server_seconds();
    server_peer_enter(exchange->peer, SERVER_RECEIVING);
    return exchange;
}

static void end_request(void *user, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode reason) {
    (void)connection, (void)reason;
    server_http *http = user;
    server_exchange *exchange = *context;
    if (!exchange)
        return;
    if (exchange->has_reply)
        http->options.done(http->options.user, exchange);
    if (exchange->is_answered)
        atomic_fetch_sub(&http->answered, 1);
    server_peer_enter(exchange->peer, SERVER_IDLE);
    server_text_free(&exchange->body);
    free(exchange);
    *context = NULL;
}

static enum MHD_Result reply(server_http *http, server_exchange *exchange) {
    server_peer_enter(exchange->peer, SERVER_ANSWERING);
    exchange->is_answered = true;
    atomic_fetch_add(&http->answered, 1);
    http->options.handle(http->options.user, exchange);
    return exchange->has_reply ? MHD_YES : MHD_NO;
}

static bool is_body_too_large(const server_http *http, server_exchange *exchange, uint64_t length) {
    if (length <= http->options.max_body_bytes)
        return false;
    server_text_free(&exchange->body);
    if (exchange->failure.status == 0)
        server_fail(&exchange->failure, 413, "the body is larger than %zu bytes (--max-body)",
                    http->options.max_body_bytes);
    return true;
}

/* Chunks are HTTP/1.1's, and TLS is libmicrohttpd's. */
static bool can_write_streams(const server_http *http, const server_exchange *exchange, const char *version) {
    return exchange->peer && !http->options.certificate && strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
}

/* A client that waits for "100 Continue" is told at once; one that sends already can read the reply only when
 * it has sent all. */
static enum MHD_Result take_headers(server_http *http, server_exchange *exchange, const char *version) {
    exchange->has_headers = true;
    if (can_write_streams(http, exchange, version))
        exchange->sender = &http->sender;
    if (!server_check_framing(exchange->connection, version, &exchange->failure)) {
        exchange->is_ambiguous = true;
        return reply(http, exchange);
    }
    const bool is_refused = is_body_too_large(http, exchange, server_content_length(exchange->connection)) ||
                            !http->options.admit(http->options.user, exchange);
    const char *expect = server_header(exchange, MHD_HTTP_HEADER_EXPECT);
    if (is_refused && expect && strcasecmp(expect, "100-continue") == 0)
        return reply(http, exchange);
    return MHD_YES;
}

static void take_body(const server_http *http, server_exchange *exchange, const char *bytes, size_t size) {
    if (is_body_too_large(http, exchange, (uint64_t)exchange->body.length + size) ||
        exchange->failure.status != 0)
        return;
    server_text_add(&exchange->body, bytes, size);
    if (exchange->body.has_failed)
        server_fail(&exchange->failure, 503, "no memory for the body");
}

static enum MHD_Result take_request(void *user, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *bytes, size_t *size,
                                    void **context) {
    (void)connection;
    server_http *http = user;
    server_exchange *exchange = *context;
    if (!exchange)
        return MHD_NO;
    exchange->path = path;
    exchange->method = method;
    if (!exchange->has_headers)
        return take_headers(http, exchange, version);
    if (*size == 0)
        return reply(http, exchange);
    take_body(http, exchange, bytes, *size);
    *size = 0;
    return MHD_YES;
}

/* ---- Connections --------------------------------------------------------------------------------------- */

static void note_connection(void *user, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode code) {
    server_http *http = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *information =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = information ? server_peers_add(&http->peers, information->connect_fd) : NULL;
    } else {
        server_peers_remove(&http->peers, *context);
        *context = NULL;
    }
}

static void ignore_log(void *user, const char *format, va_list values) {
    (void)user, (void)format, (void)values;
}

static struct MHD_Daemon *start_daemon(server_http *http, int listener) {
    const server_http_options *options = &http->options;
    const bool has_tls = options->certificate != NULL;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->private_key},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
                           MHD_USE_ITC | MHD_USE_ERROR_LOG | (has_tls ? (unsigned)MHD_USE_TLS : 0);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, take_request, http, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, options->max_connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_BYTES, MHD_OPTION_URI_LOG_CALLBACK, begin_request, http, MHD_OPTION_NOTIFY_COMPLETED,
        end_request, http, MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_ARRAY, has_tls ? tls : none, MHD_OPTION_END);
}

gumbel_status server_http_start(server_http *http, const server_http_options *options, const int *listeners,
                                size_t count, gumbel_error *error) {
    http->options = *options;
    http->peers.limits[SERVER_IDLE] = options->idle_seconds;
    http->peers.limits[SERVER_RECEIVING] = options->request_seconds;
    http->peers.limits[SERVER_SENDING] = options->send_seconds;
    error->status = GUMBEL_ERROR_IO;
    const bool is_watched = server_peers_start(&http->peers);
    if (!is_watched || !server_sender_start(&http->sender)) {
        if (is_watched)
            server_peers_stop(&http->peers);
        snprintf(error->message, sizeof error->message, "the system has no thread for the server");
        return error->status;
    }
    for (size_t i = 0; i < count && i < SERVER_LISTENERS; i++) {
        http->daemons[i] = start_daemon(http, listeners[i]);
        if (!http->daemons[i]) {
            snprintf(error->message, sizeof error->message, "libmicrohttpd did not start%s",
                     options->certificate ? "; are the certificate and its key in PEM and of each other?"
                                          : "");
            server_http_stop(http);
            return error->status;
        }
        http->daemon_count++;
    }
    return GUMBEL_OK;
}

void server_http_quiesce(server_http *http) {
    for (size_t i = 0; i < http->daemon_count; i++) {
        const int listener = MHD_quiesce_daemon(http->daemons[i]);
        if (listener >= 0)
            close(listener);
    }
}

/* The library would cut them off. */
static void wait_for_replies(const server_http *http) {
    const struct timespec pause = {.tv_nsec = 5000000};
    const double end = server_seconds() + (http->options.send_seconds > 0 ? http->options.send_seconds : 60);
    while (atomic_load(&http->answered) > 0 && server_seconds() < end)
        nanosleep(&pause, NULL);
}

void server_http_stop(server_http *http) {
    wait_for_replies(http);
    for (size_t i = 0; i < http->daemon_count; i++)
        MHD_stop_daemon(http->daemons[i]);
    server_sender_stop(&http->sender);
    server_peers_stop(&http->peers);
    *http = (server_http){0};
}
