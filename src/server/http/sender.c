/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/sender.h"

#include "base/byte_buffer.h"
#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_EVENTS = 64, MOST_TURNS = 256, TICK_MILLISECONDS = 1000 };

typedef struct server_sending {
    struct server_sending *next_ready, *next; /* of those that have something to do; of all */
    server_sender *sender;
    const server_source *source;
    server_peer *peer;
    bool is_ready, has_begun;
    server_stream_state state; /* the source's */
    gb_byte_buffer rest;       /* what the socket has not taken yet */
    size_t at;                 /* of it */
    bool is_whole;
    sem_t done;
} server_sending;

/* ---- Who has something to do --------------------------------------------------------------------------- */

/* With the lock. */
static void enter_ready(server_sender *sender, server_sending *sending) {
    if (sending->is_ready)
        return;
    sending->is_ready = true;
    sending->next_ready = NULL;
    *sender->ready_end = sending;
    sender->ready_end = &sending->next_ready;
}

static int wake(void *waker) {
    server_sending *sending = waker;
    server_sender *sender = sending->sender;
    pthread_mutex_lock(&sender->lock);
    enter_ready(sender, sending);
    const bool slept = sender->sleeps;
    sender->sleeps = false;
    pthread_mutex_unlock(&sender->lock);
    return slept ? sender->wake : -1;
}

/* With the lock. */
static void leave_ready(server_sender *sender, const server_sending *sending) {
    server_sending **at = &sender->ready;
    while (*at && *at != sending)
        at = &(*at)->next_ready;
    if (!*at)
        return;
    *at = sending->next_ready;
    if (!*at)
        sender->ready_end = at;
}

static server_sending *next_ready(server_sender *sender) {
    pthread_mutex_lock(&sender->lock);
    server_sending *sending = sender->ready;
    if (sending) {
        leave_ready(sender, sending);
        sending->is_ready = false;
    }
    pthread_mutex_unlock(&sender->lock);
    return sending;
}

/* ---- One stream ---------------------------------------------------------------------------------------- */

/* The connection's thread goes on, and the stream is gone. */
static void finish(server_sending *sending, bool is_whole) {
    server_sender *sender = sending->sender;
    sending->source->listen(sending->source->user, NULL, NULL);
    epoll_ctl(sender->poll, EPOLL_CTL_DEL, sending->peer->socket, NULL);
    pthread_mutex_lock(&sender->lock);
    leave_ready(sender, sending);
    server_sending **at = &sender->all;
    while (*at != sending)
        at = &(*at)->next;
    *at = sending->next;
    pthread_mutex_unlock(&sender->lock);
    sending->is_whole = is_whole;
    sem_post(&sending->done);
}

static void watch(server_sending *sending, uint32_t events) {
    struct epoll_event event = {.events = EPOLLRDHUP | events, .data.ptr = sending};
    epoll_ctl(sending->sender->poll, EPOLL_CTL_MOD, sending->peer->socket, &event);
    server_peer_enter(sending->peer, events ? SERVER_SENDING : SERVER_ANSWERING);
}

/* How much the socket takes; -1: it is broken. */
static ssize_t write_parts(int socket, struct iovec *parts, size_t count) {
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : sent;
}

/* Keeps what was not sent of the parts until the socket takes it. */
static void keep_rest(server_sending *sending, const struct iovec *parts, size_t count, size_t sent) {
    for (size_t i = 0; i < count; i++) {
        const size_t skipped = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        gb_buffer_append(&sending->rest, (const char *)parts[i].iov_base + skipped,
                         parts[i].iov_len - skipped);
        sent -= skipped;
    }
    if (sending->rest.size > 0)
        watch(sending, EPOLLOUT);
}

static bool write_chunk(server_sending *sending, const char *bytes, size_t length) {
    char head[24];
    const int head_length = snprintf(head, sizeof head, "%zx\r\n", length);
    struct iovec parts[] = {{head, (size_t)head_length}, {(void *)(uintptr_t)bytes, length}, {"\r\n", 2}};
    const ssize_t sent = write_parts(sending->peer->socket, parts, 3);
    if (sent >= 0)
        keep_rest(sending, parts, 3, (size_t)sent);
    return sent >= 0 && !sending->rest.failed;
}

/* Writes what has waited for the socket, as far as it goes. False: the socket is broken. */
static bool write_rest(server_sending *sending) {
    gb_byte_buffer *rest = &sending->rest;
    if (rest->size == 0)
        return true;
    struct iovec part = {rest->text + sending->at, rest->size - sending->at};
    const ssize_t sent = write_parts(sending->peer->socket, &part, 1);
    sending->at += sent > 0 ? (size_t)sent : 0;
    if (sending->at == rest->size) {
        gb_buffer_clear(rest);
        sending->at = 0;
        watch(sending, 0);
    }
    return sent >= 0;
}

/* From now on the stream is woken, and its client's leaving is seen. */
static bool begin(server_sending *sending) {
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = sending};
    if (sending->has_begun)
        return true;
    sending->has_begun = true;
    if (epoll_ctl(sending->sender->poll, EPOLL_CTL_ADD, sending->peer->socket, &event) != 0)
        return false;
    sending->source->listen(sending->source->user, wake, sending);
    return true;
}

/* Writes what there is. A stream whose socket is full is not read: its queue has a limit. */
static void advance(server_sending *sending) {
    const char *bytes;
    size_t length = 0;
    if (!begin(sending) || !write_rest(sending)) {
        finish(sending, false);
        return;
    }
    if (sending->rest.size > 0)
        return;
    if (sending->state == SERVER_STREAM_OPEN)
        sending->state = sending->source->read(sending->source->user, &bytes, &length);
    const bool is_broken =
        sending->state == SERVER_STREAM_BROKEN || (length > 0 && !write_chunk(sending, bytes, length));
    if (is_broken || (sending->state == SERVER_STREAM_ENDED && sending->rest.size == 0))
        finish(sending, !is_broken);
}

/* ---- The thread ---------------------------------------------------------------------------------------- */

static void handle_event(server_sender *sender, const struct epoll_event *event) {
    server_sending *sending = event->data.ptr;
    eventfd_t count;
    if (!sending)
        eventfd_read(sender->wake, &count);
    else if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        finish(sending, false);
    else
        advance(sending);
}

/* Silent streams may have a ping to send. */
static void tick(server_sender *sender) {
    pthread_mutex_lock(&sender->lock);
    for (server_sending *sending = sender->all; sending; sending = sending->next)
        enter_ready(sender, sending);
    pthread_mutex_unlock(&sender->lock);
}

/* Whether the thread goes on. *sleeps: it may wait for an event. */
static bool begin_turn(server_sender *sender, bool *sleeps) {
    pthread_mutex_lock(&sender->lock);
    *sleeps = sender->sleeps = !sender->ready && !sender->ends;
    const bool goes_on = !sender->ends;
    pthread_mutex_unlock(&sender->lock);
    return goes_on;
}

static void *run(void *user) {
    server_sender *sender = user;
    struct epoll_event events[MOST_EVENTS];
    double last_tick = gb_seconds();
    bool sleeps;
    while (begin_turn(sender, &sleeps)) {
        const int count = epoll_wait(sender->poll, events, MOST_EVENTS, sleeps ? TICK_MILLISECONDS : 0);
        for (int i = 0; i < count; i++)
            handle_event(sender, &events[i]);
        if (gb_seconds() - last_tick > 1e-3 * TICK_MILLISECONDS) {
            last_tick = gb_seconds();
            tick(sender);
        }
        server_sending *sending;
        for (int i = 0; i < MOST_TURNS && (sending = next_ready(sender)); i++)
            advance(sending);
    }
    return NULL;
}

bool server_sender_start(server_sender *sender) {
    struct epoll_event event = {.events = EPOLLIN};
    sender->poll = epoll_create1(EPOLL_CLOEXEC);
    sender->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sender->ready_end = &sender->ready;
    pthread_mutex_init(&sender->lock, NULL);
    sender->is_started = sender->poll >= 0 && sender->wake >= 0 &&
                         epoll_ctl(sender->poll, EPOLL_CTL_ADD, sender->wake, &event) == 0 &&
                         pthread_create(&sender->thread, NULL, run, sender) == 0;
    if (sender->is_started)
        return true;
    pthread_mutex_destroy(&sender->lock);
    close(sender->poll);
    close(sender->wake);
    return false;
}

void server_sender_stop(server_sender *sender) {
    if (!sender->is_started)
        return;
    pthread_mutex_lock(&sender->lock);
    sender->ends = true;
    pthread_mutex_unlock(&sender->lock);
    eventfd_write(sender->wake, 1);
    pthread_join(sender->thread, NULL);
    pthread_mutex_destroy(&sender->lock);
    close(sender->poll);
    close(sender->wake);
    *sender = (server_sender){0};
}

/* ---- The connection's side ----------------------------------------------------------------------------- */

bool server_sender_send(server_sender *sender, const server_source *source, server_peer *peer) {
    const int on = 1;
    server_sending sending = {.sender = sender, .source = source, .peer = peer};
    setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* of a UNIX socket nothing */
    sem_init(&sending.done, 0, 0);
    server_peer_enter(peer, SERVER_ANSWERING);
    pthread_mutex_lock(&sender->lock);
    sending.next = sender->all;
    sender->all = &sending;
    pthread_mutex_unlock(&sender->lock);
    const int descriptor = wake(&sending); /* the rest is the sender's, until it is done */
    if (descriptor >= 0)
        eventfd_write(descriptor, 1);
    while (sem_wait(&sending.done) != 0) {
    }
    sem_destroy(&sending.done);
    gb_buffer_free(&sending.rest);
    server_peer_enter(peer, SERVER_SENDING);
    return sending.is_whole;
}
