/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP by libmicrohttpd: a thread for each connection, which reads a request, runs its handler and sends the
 * reply, one that accepts connections, and one that writes all streams. Nothing is ever suspended, so that a
 * client's leaving is always seen.
 */
#ifndef GUMBEL_SERVER_HTTP_LISTENER_H
#define GUMBEL_SERVER_HTTP_LISTENER_H

#include "server/http/acceptor.h"
#include "server/http/exchange.h"

struct MHD_Daemon;

typedef struct server_http_options {
    const char *certificate, *private_key; /* in PEM; NULL: no TLS */
    size_t max_body_bytes;
    unsigned max_connections, max_connections_per_address; /* the latter 0: any */
    double idle_seconds, request_seconds, send_seconds;    /* limits of a connection's phases */
    /* Looks at a request whose headers are there and whose body is not. False, with exchange->failure: it is
     * refused, and its body dropped. */
    bool (*admit)(void *user, server_exchange *exchange);
    /* Replies to a whole request, or with its failure. */
    void (*handle)(void *user, server_exchange *exchange);
    /* A request has been replied to with that status. */
    void (*done)(void *user, int status);
    void *user;
} server_http_options;

/* Starts zeroed. */
typedef struct server_http {
    server_http_options options;
    server_peers peers;
    server_sender sender;
    atomic_uint answered; /* requests that a handler has and that are not replied to yet */
    struct MHD_Daemon *daemon;
    server_acceptor acceptor;
} server_http;

/* Takes connections of the listeners from now on; they are closed in the end. Errors: IO, ARGUMENT (TLS). */
gumbel_status server_http_start(server_http *http, const server_http_options *options, const int *listeners,
                                size_t count, gumbel_error *error);

/* Takes no more connections; those there are go on. */
void server_http_quiesce(server_http *http);

/* Waits for the replies under way, as long as a client may take for one, and ends all connections. */
void server_http_stop(server_http *http);

#endif
