/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the streams of all connections from one thread, so that a step's tokens cost one wake-up and a
 * system call for each stream. Meanwhile the connections' own threads wait. It writes HTTP/1.1 chunks to the
 * socket, behind the headers that libmicrohttpd has sent and before the last chunk, which is libmicrohttpd's.
 */
#ifndef GUMBEL_SERVER_HTTP_SENDER_H
#define GUMBEL_SERVER_HTTP_SENDER_H

#include "server/http/peers.h"

#include <stddef.h>
#include <sys/types.h>

typedef enum server_stream_state {
    SERVER_STREAM_OPEN,
    SERVER_STREAM_ENDED,
    SERVER_STREAM_BROKEN /* the connection must end */
} server_stream_state;

/* A reply that is made while it is sent. */
typedef struct server_source {
    /* Gives all bytes that there are, none if there are none; they are valid until the next call. */
    server_stream_state (*read)(void *user, const char **bytes, size_t *length);
    /* wake is called, by any thread, when there is more than the last read gave, and returns an eventfd to be
     * written, or -1; NULL: nobody is woken any more once this returns. */
    void (*listen)(void *user, int (*wake)(void *waker), void *waker);
    void (*free)(void *user);
    void *user;
} server_source;

/* Starts zeroed. */
typedef struct server_sender {
    pthread_mutex_t lock; /* of what stands before the thread */
    struct server_sending *ready, **ready_end, *all;
    bool sleeps, ends;
    bool is_started;
    pthread_t thread;
    int poll, wake; /* an epoll instance, an eventfd in it */
} server_sender;

/* Starts the thread. False: the system has no thread or descriptor. */
bool server_sender_start(server_sender *sender);

/* When nothing is sent any more. Allowed on a zeroed sender. */
void server_sender_stop(server_sender *sender);

/* Writes all of a stream to the peer's socket, and returns when it has. False: the stream or its connection
 * is broken. */
bool server_sender_send(server_sender *sender, const server_source *source, server_peer *peer);

#endif
