/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/listener.h"

#include "base/clock.h"
#include "server/http/framing.h"
#include "server/http/head.h"
#include "server/http/refusal.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { STACK_BYTES = 1024 * 1024, CLOSING_SECONDS = 2 };

/* A client sends more than this for longer than a request may take, and gets its reply at once. */
static const uint64_t most_dropped_bytes = (uint64_t)1 << 30;

/* ---- Requests ------------------------------------------------------------------------------------------ */

/* The first that is known of a request: its first line. */
static void *begin_request(void *user, const char *uri, struct MHD_Connection *connection) {
    server_http *http = user;
    server_exchange *exchange = calloc(1, sizeof *exchange);
    const union MHD_ConnectionInfo *information =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (!exchange)
        return NULL;
    exchange->connection = connection;
    exchange->peer = information ? information->socket_context : NULL;
    exchange->sender = &http->sender;
    exchange->begin = gb_seconds();
    if (strchr(uri, ' '))
        server_refuse(&exchange->failure, NULL, "there is a space in the request's target");
    server_set_thread_peer(exchange->peer);
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
        http->options.done(http->options.user, exchange->status);
    if (exchange->is_answered)
        atomic_fetch_sub(&http->answered, 1);
    server_peer_enter(exchange->peer, SERVER_IDLE);
    gb_buffer_free(&exchange->body);
    free(exchange);
    *context = NULL;
}

static enum MHD_Result reply(server_http *http, server_exchange *exchange) {
    server_peer_enter(exchange->peer, SERVER_ANSWERING);
    server_json_forget();
    exchange->is_answered = true;
    atomic_fetch_add(&http->answered, 1);
    http->options.handle(http->options.user, exchange);
    return exchange->has_reply ? MHD_YES : MHD_NO;
}

static bool is_body_too_large(const server_http *http, server_exchange *exchange, uint64_t length) {
    if (length <= http->options.max_body_bytes)
        return false;
    gb_buffer_free(&exchange->body);
    if (exchange->failure.status == 0)
        server_fail(&exchange->failure, 413, "the body is larger than %zu bytes (--max-body)",
                    http->options.max_body_bytes);
    return true;
}

/* A client that waits for "100 Continue" has its reply at once; one that sends already can read the reply
 * only when it has sent all. */
static enum MHD_Result handle_headers(server_http *http, server_exchange *exchange) {
    exchange->has_headers = true;
    if (exchange->failure.status != 0 ||
        !server_check_framing(exchange->connection, exchange->version, &exchange->failure)) {
        exchange->is_ambiguous = true;
        return reply(http, exchange);
    }
    const uint64_t length = server_content_length(exchange->connection);
    const bool is_refused =
        is_body_too_large(http, exchange, length) || !http->options.admit(http->options.user, exchange);
    const char *expect = server_header(exchange, MHD_HTTP_HEADER_EXPECT);
    if (is_refused && (length > most_dropped_bytes || (expect && strcasecmp(expect, "100-continue") == 0)))
        return reply(http, exchange);
    return MHD_YES;
}

static void handle_body(const server_http *http, server_exchange *exchange, const char *bytes, size_t size) {
    if (is_body_too_large(http, exchange, (uint64_t)exchange->body.size + size) ||
        exchange->failure.status != 0)
        return;
    gb_buffer_append(&exchange->body, bytes, size);
    if (exchange->body.failed)
        server_fail(&exchange->failure, 503, "no memory for the body");
}

static enum MHD_Result handle_request(void *user, struct MHD_Connection *connection, const char *path,
                                      const char *method, const char *version, const char *bytes,
                                      size_t *size, void **context) {
    (void)connection;
    server_http *http = user;
    server_exchange *exchange = *context;
    if (!exchange)
        return MHD_NO;
    exchange->path = path;
    exchange->method = method;
    exchange->version = version;
    if (!exchange->has_headers)
        return handle_headers(http, exchange);
    if (*size == 0)
        return reply(http, exchange);
    handle_body(http, exchange, bytes, *size);
    *size = 0;
    return MHD_YES;
}

/* ---- Connections --------------------------------------------------------------------------------------- */

static void handle_connection(void *user, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code) {
    server_http *http = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *information =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = information ? server_peers_find(&http->peers, information->connect_fd) : NULL;
    } else {
        server_peers_remove(&http->peers, *context);
        *context = NULL;
    }
}

static void handle_log(void *user, const char *format, va_list values) {
    const server_http *http = user;
    const int status = server_reply_to_parser_error(format, values);
    if (status != 0)
        http->options.done(http->options.user, status);
}

/* Limits of connections are the acceptor's; this one leaves room for those that are closing. */
static struct MHD_Daemon *start_daemon(server_http *http) {
    const server_http_options *options = &http->options;
    const bool has_tls = options->certificate != NULL;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->private_key},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
                           MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
                           (has_tls ? (unsigned)MHD_USE_TLS : 0);
    return MHD_start_daemon(flags, 0, NULL, NULL, handle_request, http, MHD_OPTION_EXTERNAL_LOGGER,
                            handle_log, http, MHD_OPTION_CONNECTION_LIMIT, 4 * options->max_connections + 64,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_HEAD_BYTES,
                            MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_URI_LOG_CALLBACK,
                            begin_request, http, MHD_OPTION_NOTIFY_COMPLETED, end_request, http,
                            MHD_OPTION_NOTIFY_CONNECTION, handle_connection, http, MHD_OPTION_ARRAY,
                            has_tls ? tls : none, MHD_OPTION_END);
}

static void set_limits(server_peers *peers, const server_http_options *options) {
    peers->limits[SERVER_IDLE] = options->idle_seconds;
    peers->limits[SERVER_RECEIVING] = options->request_seconds;
    peers->limits[SERVER_SENDING] = options->send_seconds;
    peers->limits[SERVER_CLOSING] = CLOSING_SECONDS;
    peers->has_tls = options->certificate != NULL;
    peers->most = options->max_connections;
    peers->most_per_address = options->max_connections_per_address;
}

static bool start_threads(server_http *http) {
    if (!server_peers_start(&http->peers))
        return false;
    if (server_sender_start(&http->sender))
        return true;
    server_peers_stop(&http->peers);
    return false;
}

static gumbel_status fail(gumbel_error *error, const char *message) {
    snprintf(error->message, sizeof error->message, "%s", message);
    return error->status = GUMBEL_ERROR_IO;
}

gumbel_status server_http_start(server_http *http, const server_http_options *options, const int *listeners,
                                size_t count, gumbel_error *error) {
    http->options = *options;
    set_limits(&http->peers, options);
    if (!start_threads(http))
        return fail(error, "the system has no thread for the server");
    http->daemon = start_daemon(http);
    const server_acceptor_options accepting = {
        .peers = &http->peers, .daemon = http->daemon, .done = options->done, .user = options->user};
    const bool has_daemon = http->daemon != NULL;
    if (has_daemon && server_acceptor_start(&http->acceptor, &accepting, listeners, count))
        return GUMBEL_OK;
    server_http_stop(http);
    return fail(error,
                has_daemon ? "the system has no thread for new connections"
                : options->certificate
                    ? "libmicrohttpd did not start; are the certificate and its key in PEM and of each other?"
                    : "libmicrohttpd did not start");
}

void server_http_quiesce(server_http *http) {
    server_acceptor_quiesce(&http->acceptor);
}

/* The library would cut them off. */
static void wait_for_replies(const server_http *http) {
    const struct timespec pause = {.tv_nsec = 5000000};
    const double end = gb_seconds() + (http->options.send_seconds > 0 ? http->options.send_seconds : 60);
    while (atomic_load(&http->answered) > 0 && gb_seconds() < end)
        nanosleep(&pause, NULL);
}

void server_http_stop(server_http *http) {
    wait_for_replies(http);
    server_acceptor_stop(&http->acceptor);
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    server_sender_stop(&http->sender);
    server_peers_stop(&http->peers);
    *http = (server_http){0};
}
