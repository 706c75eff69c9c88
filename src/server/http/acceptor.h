/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that accepts connections, keeps to their limits, and looks at the head of each one's first
 * request; when that is whole the connection is libmicrohttpd's. One that sends nothing costs no thread.
 */
#ifndef GUMBEL_SERVER_HTTP_ACCEPTOR_H
#define GUMBEL_SERVER_HTTP_ACCEPTOR_H

#include "server/http/peers.h"

#include <stddef.h>

struct MHD_Daemon;

enum { SERVER_LISTENERS = 8 };

typedef struct server_acceptor_options {
    server_peers *peers;
    struct MHD_Daemon *daemon; /* takes the connections */
    /* A connection or a malformed request was refused with that status. */
    void (*done)(void *user, int status);
    void *user;
} server_acceptor_options;

/* Starts zeroed. */
typedef struct server_acceptor {
    server_acceptor_options options;
    int poll, wake;
    pthread_mutex_t lock; /* of the listeners */
    int listeners[SERVER_LISTENERS];
    size_t listener_count;
    pthread_t thread;
    atomic_bool ends;
    bool is_started;
} server_acceptor;

/* The listeners are taken over unless it fails. False: the system has no thread or no descriptor. */
bool server_acceptor_start(server_acceptor *acceptor, const server_acceptor_options *options,
                           const int *listeners, size_t count);

/* Closes the listeners; connections there are go on. */
void server_acceptor_quiesce(server_acceptor *acceptor);

/* The same, and closes the connections that it has. */
void server_acceptor_stop(server_acceptor *acceptor);

#endif
