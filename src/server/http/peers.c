/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/peers.h"

#include "base/clock.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum { TICK_NANOSECONDS = 250000000, NETWORK_BYTES = 8 };

/* ---- Addresses ----------------------------------------------------------------------------------------- */

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

server_address server_address_of(const struct sockaddr_storage *peer) {
    server_address address = {.is_known = true};
    if (peer->ss_family == AF_INET) {
        memcpy(address.bytes, mapped, sizeof mapped);
        memcpy(address.bytes + sizeof mapped, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (peer->ss_family == AF_INET6) {
        memcpy(address.bytes, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 16);
    } else {
        address.is_known = false;
    }
    return address;
}

static bool is_mapped(const server_address *address) {
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

bool server_is_same_address(const server_address *one, const server_address *other) {
    const size_t length = is_mapped(one) || is_mapped(other) ? sizeof one->bytes : (size_t)NETWORK_BYTES;
    return one->is_known && other->is_known && memcmp(one->bytes, other->bytes, length) == 0;
}

/* ---- The list ------------------------------------------------------------------------------------------ */

static void insert(server_peers *peers, server_peer *peer) {
    peer->next = peers->first;
    if (peers->first)
        peers->first->previous = peer;
    peers->first = peer;
    peers->count++;
}

static void take_out(server_peers *peers, server_peer *peer) {
    if (peer->previous)
        peer->previous->next = peer->next;
    else
        peers->first = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    peers->count--;
}

static server_peer *find(const server_peers *peers, int socket) {
    server_peer *peer = peers->first;
    while (peer && peer->socket != socket)
        peer = peer->next;
    return peer;
}

static void forget(server_peers *peers, server_peer *peer) {
    if (!peer)
        return;
    take_out(peers, peer);
    free(peer);
}

/* ---- The watchdog -------------------------------------------------------------------------------------- */

/* Whether the client has taken bytes since the last look. */
static bool makes_progress(server_peer *peer) {
    int unsent = 0;
    const int before = peer->unsent;
    ioctl(peer->socket, TIOCOUTQ, &unsent);
    peer->unsent = unsent;
    return unsent != before;
}

static void end_slow_ones(server_peers *peers) {
    const double now = gb_seconds();
    for (server_peer *peer = peers->first; peer; peer = peer->next) {
        const double limit = peers->limits[atomic_load(&peer->phase)];
        if (atomic_load(&peer->phase) == SERVER_SENDING && makes_progress(peer))
            atomic_store(&peer->since, now);
        if (limit <= 0 || now - atomic_load(&peer->since) <= limit)
            continue;
        shutdown(peer->socket, SHUT_RDWR); /* its thread sees the end and cleans up */
        atomic_store(&peer->since, now + 3600);
    }
}

static void *watch(void *user) {
    server_peers *peers = user;
    pthread_mutex_lock(&peers->lock);
    while (!peers->ends) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&peers->wake, &peers->lock, &until);
        end_slow_ones(peers);
    }
    pthread_mutex_unlock(&peers->lock);
    return NULL;
}

bool server_peers_start(server_peers *peers) {
    pthread_mutex_init(&peers->lock, NULL);
    pthread_cond_init(&peers->wake, NULL);
    return pthread_create(&peers->watchdog, NULL, watch, peers) == 0;
}

void server_peers_stop(server_peers *peers) {
    pthread_mutex_lock(&peers->lock);
    peers->ends = true;
    pthread_cond_signal(&peers->wake);
    pthread_mutex_unlock(&peers->lock);
    pthread_join(peers->watchdog, NULL);
    while (peers->first)
        forget(peers, peers->first);
    pthread_cond_destroy(&peers->wake);
    pthread_mutex_destroy(&peers->lock);
}

/* ---- Limits -------------------------------------------------------------------------------------------- */

/* Of that address; NULL: of any. */
static bool counts(const server_peer *peer, const server_address *address) {
    return atomic_load(&peer->phase) != SERVER_CLOSING &&
           (!address || server_is_same_address(&peer->address, address));
}

static unsigned count(const server_peers *peers, const server_address *address) {
    unsigned counted = 0;
    for (const server_peer *peer = peers->first; peer; peer = peer->next)
        counted += counts(peer, address);
    return counted;
}

/* A request that has arrived and that nobody has looked at yet is none the less there. */
static bool is_idle(const server_peer *peer) {
    int unread = 0;
    ioctl(peer->socket, FIONREAD, &unread);
    return atomic_load(&peer->phase) == SERVER_IDLE && unread == 0;
}

/* Ends the one that has been idle longest. */
static bool end_idle(const server_peers *peers, const server_address *address) {
    server_peer *oldest = NULL;
    for (server_peer *peer = peers->first; peer; peer = peer->next)
        if (counts(peer, address) && is_idle(peer) &&
            (!oldest || atomic_load(&peer->since) < atomic_load(&oldest->since)))
            oldest = peer;
    if (!oldest)
        return false;
    server_peer_enter(oldest, SERVER_CLOSING);
    shutdown(oldest->socket, SHUT_RDWR);
    return true;
}

static bool is_full(const server_peers *peers, const server_address *address, unsigned most) {
    return most > 0 && count(peers, address) >= most;
}

static bool make_room(const server_peers *peers, const server_address *address, server_failure *failure) {
    if (is_full(peers, address, peers->most_per_address)) {
        if (end_idle(peers, address))
            return true;
        server_fail(failure, 429, "this address has %u connections (--max-connections-per-address)",
                    peers->most_per_address);
        failure->code = "too_many_connections";
        return false;
    }
    return !is_full(peers, NULL, peers->most) || end_idle(peers, NULL) ||
           server_fail(failure, 503, "the server has %u connections (--max-connections)", peers->most);
}

/* ---- Coming and going ---------------------------------------------------------------------------------- */

enum { MOST_CLOSING = 8 }; /* of one address: refused ones stay for a moment */

static bool is_crowded(const server_peers *peers, const server_address *address) {
    unsigned closing = 0;
    for (const server_peer *peer = peers->first; peer; peer = peer->next)
        closing +=
            atomic_load(&peer->phase) == SERVER_CLOSING && server_is_same_address(&peer->address, address);
    return closing >= MOST_CLOSING || (peers->most > 0 && peers->count / 2 >= peers->most);
}

server_peer *server_peers_add(server_peers *peers, int socket, const server_address *address,
                              server_failure *failure) {
    server_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->socket = socket;
    peer->address = *address;
    peer->has_tls = peers->has_tls;
    pthread_mutex_lock(&peers->lock);
    const bool has_place = !is_crowded(peers, address);
    forget(peers, find(peers, socket)); /* of a connection that libmicrohttpd had no memory for */
    if (has_place) {
        server_peer_enter(peer, make_room(peers, address, failure) ? SERVER_IDLE : SERVER_CLOSING);
        insert(peers, peer);
    }
    pthread_mutex_unlock(&peers->lock);
    if (has_place)
        return peer;
    free(peer);
    return NULL;
}

void server_peers_remove(server_peers *peers, server_peer *peer) {
    pthread_mutex_lock(&peers->lock);
    forget(peers, peer);
    pthread_mutex_unlock(&peers->lock);
}

server_peer *server_peers_find(server_peers *peers, int socket) {
    pthread_mutex_lock(&peers->lock);
    server_peer *peer = find(peers, socket);
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

server_peer *server_peers_find_waiting(server_peers *peers) {
    pthread_mutex_lock(&peers->lock);
    server_peer *peer = peers->first;
    while (peer && !peer->is_waiting)
        peer = peer->next;
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void server_peer_enter(server_peer *peer, server_phase phase) {
    if (!peer)
        return;
    server_phase before = atomic_load(&peer->phase);
    do {
        if (before == SERVER_CLOSING)
            return;
    } while (!atomic_compare_exchange_weak(&peer->phase, &before, phase));
    atomic_store(&peer->since, gb_seconds());
}
