/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections there are, their limits, and a thread that ends those that take too long: libmicrohttpd's
 * own timeout counts from the last byte, so that a client that sends one byte now and then would stay for
 * ever. A client that takes a reply slowly stays while it takes any of it.
 */
#ifndef GUMBEL_SERVER_HTTP_PEERS_H
#define GUMBEL_SERVER_HTTP_PEERS_H

#include "server/base/failure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

/* Where a connection comes from, as far as limits per address go. */
typedef struct server_address {
    unsigned char bytes[16]; /* of IPv6, in which IPv4 is mapped */
    bool is_known;           /* the peer of a UNIX socket has none */
} server_address;

server_address server_address_of(const struct sockaddr_storage *peer);

/* Whether both are one client's: of IPv6 the network's half decides, since one host has all addresses of it.
 */
bool server_is_same_address(const server_address *one, const server_address *other);

/* What a connection does. Each phase has its limit of seconds; 0: none. */
typedef enum server_phase {
    SERVER_IDLE,      /* no request has begun */
    SERVER_RECEIVING, /* a request has begun and is not whole */
    SERVER_ANSWERING, /* the server works */
    SERVER_SENDING,   /* the client has to take what was written */
    SERVER_CLOSING,   /* refused, or ended for another one; it counts no more */
    SERVER_PHASES
} server_phase;

typedef struct server_peer {
    int socket;
    _Atomic server_phase phase;
    _Atomic double since; /* seconds of gb_seconds() */
    int unsent;           /* bytes in the socket when the watchdog looked last */
    server_address address;
    bool has_tls;    /* what the socket carries is libmicrohttpd's alone to read and write */
    bool is_waiting; /* for its first request: the acceptor's and not yet libmicrohttpd's */
    struct server_peer *next, *previous;
} server_peer;

typedef struct server_peers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t watchdog;
    bool ends;
    server_peer *first;
    unsigned count;
    bool has_tls; /* all have */
    double limits[SERVER_PHASES];
    unsigned most, most_per_address; /* connections; 0: any */
} server_peers;

/* Starts the watchdog. False: the system has no thread. */
bool server_peers_start(server_peers *peers);

/* When no connection is libmicrohttpd's or the acceptor's any more. */
void server_peers_stop(server_peers *peers);

/* Where a limit is reached, the connection that has been idle longest is ended for the new one; where none is
 * idle, *failure says so and the new one is closing. NULL: no memory, or too many are closing. */
server_peer *server_peers_add(server_peers *peers, int socket, const server_address *address,
                              server_failure *failure);
void server_peers_remove(server_peers *peers, server_peer *peer);

/* That of a socket, and any that waits for its first request; NULL: there is none. */
server_peer *server_peers_find(server_peers *peers, int socket);
server_peer *server_peers_find_waiting(server_peers *peers);

/* Begins a phase; one that is closing stays so. Thread-safe. */
void server_peer_enter(server_peer *peer, server_phase phase);

#endif
