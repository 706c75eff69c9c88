/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* accept4 */
#include "server/http/acceptor.h"

#include "server/http/head.h"
#include "server/http/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_EVENTS = 64 };

/* ---- Connections without a request --------------------------------------------------------------------- */

static void drop(server_acceptor *acceptor, server_peer *peer) {
    const int socket = peer->socket;
    server_peers_remove(acceptor->options.peers, peer); /* before the number is another socket's */
    close(socket);
}

/* The client has a moment to read why, and then the watchdog ends it. */
static void refuse(server_acceptor *acceptor, server_peer *peer, const server_failure *failure) {
    server_peer_enter(peer, SERVER_CLOSING);
    server_send_refusal(peer->socket, failure);
    acceptor->options.done(acceptor->options.user, failure->status);
    if (!server_drop_input(peer->socket))
        drop(acceptor, peer);
}

static void hand_over(server_acceptor *acceptor, server_peer *peer) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getpeername(peer->socket, (struct sockaddr *)&address, &size) != 0) {
        drop(acceptor, peer);
        return;
    }
    epoll_ctl(acceptor->poll, EPOLL_CTL_DEL, peer->socket, NULL);
    peer->is_waiting = false;
    if (MHD_add_connection(acceptor->options.daemon, peer->socket, (struct sockaddr *)&address, size) !=
        MHD_YES)
        server_peers_remove(acceptor->options.peers, peer); /* its socket is closed */
}

static void peek_at_head(server_acceptor *acceptor, server_peer *peer, bool is_closed) {
    char head[SERVER_HEAD_BYTES];
    server_failure failure;
    ssize_t size;
    do
        size = recv(peer->socket, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    while (size < 0 && errno == EINTR); /* there would be no other event */
    if (size <= 0) {
        if (size == 0 || is_closed || errno != EAGAIN)
            drop(acceptor, peer);
        return;
    }
    if (atomic_load(&peer->phase) == SERVER_IDLE)
        server_peer_enter(peer, SERVER_RECEIVING);
    switch (server_check_head(head, (size_t)size, &failure)) {
    case SERVER_HEAD_PART:
        if (is_closed)
            drop(acceptor, peer);
        return;
    case SERVER_HEAD_WHOLE:
        hand_over(acceptor, peer);
        return;
    case SERVER_HEAD_BAD:
        refuse(acceptor, peer, &failure);
    }
}

static void handle_peer_event(server_acceptor *acceptor, server_peer *peer, uint32_t events) {
    if (atomic_load(&peer->phase) != SERVER_CLOSING)
        peek_at_head(acceptor, peer, (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
    else if (!server_drop_input(peer->socket) || (events & (EPOLLHUP | EPOLLERR)))
        drop(acceptor, peer);
}

/* ---- Accepting ----------------------------------------------------------------------------------------- */

/* What has arrived is only looked at, so that each arrival has to be an event of its own. */
static bool wait_for_head(server_acceptor *acceptor, server_peer *peer) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = peer};
    peer->is_waiting = true;
    return epoll_ctl(acceptor->poll, EPOLL_CTL_ADD, peer->socket, &event) == 0;
}

static void add_connection(server_acceptor *acceptor, int socket, const struct sockaddr_storage *address) {
    const server_address from = server_address_of(address);
    server_failure failure = {0};
    server_peer *peer = server_peers_add(acceptor->options.peers, socket, &from, &failure);
    if (!peer) {
        close(socket);
    } else if (peer->has_tls) {
        if (failure.status == 0)
            hand_over(acceptor, peer);
        else
            drop(acceptor, peer);
    } else if (!wait_for_head(acceptor, peer)) {
        drop(acceptor, peer);
    } else if (failure.status != 0) {
        refuse(acceptor, peer, &failure);
    }
}

static void back_off(void) {
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
}

static void accept_one(server_acceptor *acceptor, const int *listener) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    pthread_mutex_lock(&acceptor->lock);
    const int socket = accept4(*listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC);
    const int reason = errno;
    pthread_mutex_unlock(&acceptor->lock);
    if (socket >= 0) {
        add_connection(acceptor, socket, &address);
    } else if (reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM) {
        back_off(); /* the event stays */
    }
}

/* ---- The thread ---------------------------------------------------------------------------------------- */

static void handle_event(server_acceptor *acceptor, const struct epoll_event *event) {
    const int *first = acceptor->listeners;
    for (size_t i = 0; i < SERVER_LISTENERS; i++)
        if (event->data.ptr == first + i) {
            accept_one(acceptor, first + i);
            return;
        }
    if (event->data.ptr)
        handle_peer_event(acceptor, event->data.ptr, event->events);
}

static void *run(void *user) {
    server_acceptor *acceptor = user;
    struct epoll_event events[MOST_EVENTS];
    while (!atomic_load(&acceptor->ends)) {
        const int count = epoll_wait(acceptor->poll, events, MOST_EVENTS, -1);
        for (int i = 0; i < count; i++)
            handle_event(acceptor, &events[i]);
    }
    return NULL;
}

static bool listen_to(server_acceptor *acceptor, const int *listeners, size_t count) {
    bool is_good = true;
    for (size_t i = 0; i < count && i < SERVER_LISTENERS; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &acceptor->listeners[i]};
        acceptor->listeners[i] = listeners[i];
        fcntl(listeners[i], F_SETFL, fcntl(listeners[i], F_GETFL) | O_NONBLOCK);
        is_good &= epoll_ctl(acceptor->poll, EPOLL_CTL_ADD, listeners[i], &event) == 0;
        acceptor->listener_count++;
    }
    return is_good;
}

bool server_acceptor_start(server_acceptor *acceptor, const server_acceptor_options *options,
                           const int *listeners, size_t count) {
    struct epoll_event event = {.events = EPOLLIN};
    acceptor->options = *options;
    acceptor->poll = epoll_create1(EPOLL_CLOEXEC);
    acceptor->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&acceptor->lock, NULL);
    acceptor->is_started = acceptor->poll >= 0 && acceptor->wake >= 0 &&
                           epoll_ctl(acceptor->poll, EPOLL_CTL_ADD, acceptor->wake, &event) == 0 &&
                           listen_to(acceptor, listeners, count) &&
                           pthread_create(&acceptor->thread, NULL, run, acceptor) == 0;
    if (acceptor->is_started)
        return true;
    pthread_mutex_destroy(&acceptor->lock);
    close(acceptor->poll);
    close(acceptor->wake);
    return false;
}

void server_acceptor_quiesce(server_acceptor *acceptor) {
    pthread_mutex_lock(&acceptor->lock);
    for (size_t i = 0; i < acceptor->listener_count; i++) {
        /* A socket of systemd's stays open there, and would go on to have events. */
        epoll_ctl(acceptor->poll, EPOLL_CTL_DEL, acceptor->listeners[i], NULL);
        close(acceptor->listeners[i]);
        acceptor->listeners[i] = -1;
    }
    acceptor->listener_count = 0;
    pthread_mutex_unlock(&acceptor->lock);
}

void server_acceptor_stop(server_acceptor *acceptor) {
    server_peer *peer;
    if (!acceptor->is_started)
        return;
    atomic_store(&acceptor->ends, true);
    eventfd_write(acceptor->wake, 1);
    pthread_join(acceptor->thread, NULL);
    server_acceptor_quiesce(acceptor);
    while ((peer = server_peers_find_waiting(acceptor->options.peers)))
        drop(acceptor, peer);
    pthread_mutex_destroy(&acceptor->lock);
    close(acceptor->poll);
    close(acceptor->wake);
    *acceptor = (server_acceptor){0};
}
