/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/peers.h"

#include "server/base/clock.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum { TICK_NANOSECONDS = 250000000 };

/* Whether the client has taken bytes since the last look. */
static bool makes_progress(server_peer *peer) {
    int unsent = 0;
    const int before = peer->unsent;
    ioctl(peer->socket, TIOCOUTQ, &unsent);
    peer->unsent = unsent;
    return unsent != before;
}

static void end_slow_ones(server_peers *peers) {
    const double now = server_seconds();
    for (server_peer *peer = peers->first; peer; peer = peer->next) {
        const double limit = peers->limits[atomic_load(&peer->phase)];
        if (atomic_load(&peer->phase) == SERVER_SENDING && makes_progress(peer))
            atomic_store(&peer->since, now);
        if (limit <= 0 || now - atomic_load(&peer->since) <= limit)
            continue;
        shutdown(peer->socket, SHUT_RDWR); /* its thread sees the end and cleans up */
        atomic_store(&peer->since, now + 3600);
        atomic_fetch_add(&peers->timeouts, 1);
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
    pthread_cond_destroy(&peers->wake);
    pthread_mutex_destroy(&peers->lock);
}

server_peer *server_peers_add(server_peers *peers, int socket) {
    server_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->socket = socket;
    server_peer_enter(peer, SERVER_IDLE);
    pthread_mutex_lock(&peers->lock);
    peer->next = peers->first;
    if (peers->first)
        peers->first->previous = peer;
    peers->first = peer;
    pthread_mutex_unlock(&peers->lock);
    atomic_fetch_add(&peers->count, 1);
    return peer;
}

void server_peers_remove(server_peers *peers, server_peer *peer) {
    if (!peer)
        return;
    pthread_mutex_lock(&peers->lock);
    if (peer->previous)
        peer->previous->next = peer->next;
    else
        peers->first = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    pthread_mutex_unlock(&peers->lock);
    atomic_fetch_sub(&peers->count, 1);
    free(peer);
}

void server_peer_enter(server_peer *peer, server_phase phase) {
    if (!peer)
        return;
    atomic_store(&peer->since, server_seconds());
    atomic_store(&peer->phase, phase);
}
