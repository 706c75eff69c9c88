/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls on sockets, events and threads beside those of failing_calls.c. Each fails as the system lets it fail
 * on a good day with many connections: no descriptor, no memory, a client that has left.
 */
#define _GNU_SOURCE /* accept4, RTLD_NEXT */
#include "failing_calls.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

REPLACED int socket(int domain, int type, int protocol) {
    if (call_fails(PLAIN, NULL, EMFILE))
        return -1;
    FORWARD(int, "socket", (int, int, int), domain, type, protocol);
}

REPLACED int bind(int descriptor, __CONST_SOCKADDR_ARG address, socklen_t size) {
    if (call_fails(PLAIN, NULL, EADDRINUSE))
        return -1;
    FORWARD(int, "bind", (int, __CONST_SOCKADDR_ARG, socklen_t), descriptor, address, size);
}

REPLACED int listen(int descriptor, int backlog) {
    if (call_fails(PLAIN, NULL, EADDRINUSE))
        return -1;
    FORWARD(int, "listen", (int, int), descriptor, backlog);
}

REPLACED int connect(int descriptor, __CONST_SOCKADDR_ARG address, socklen_t size) {
    if (call_fails(PLAIN, NULL, ECONNREFUSED))
        return -1;
    FORWARD(int, "connect", (int, __CONST_SOCKADDR_ARG, socklen_t), descriptor, address, size);
}

REPLACED int accept4(int descriptor, __SOCKADDR_ARG address, socklen_t *size, int flags) {
    if (call_fails(WAITS, NULL, EMFILE))
        return -1;
    FORWARD(int, "accept4", (int, __SOCKADDR_ARG, socklen_t *, int), descriptor, address, size, flags);
}

REPLACED int getpeername(int descriptor, __SOCKADDR_ARG address, socklen_t *size) {
    if (call_fails(PLAIN, NULL, ENOTCONN))
        return -1;
    FORWARD(int, "getpeername", (int, __SOCKADDR_ARG, socklen_t *), descriptor, address, size);
}

REPLACED int setsockopt(int descriptor, int level, int name, const void *value, socklen_t size) {
    if (call_fails(PLAIN, NULL, ENOBUFS))
        return -1;
    FORWARD(int, "setsockopt", (int, int, int, const void *, socklen_t), descriptor, level, name, value,
            size);
}

REPLACED ssize_t recv(int descriptor, void *to, size_t size, int flags) {
    if (call_fails(MOVES_BYTES, &size, ECONNRESET))
        return -1;
    FORWARD(ssize_t, "recv", (int, void *, size_t, int), descriptor, to, size, flags);
}

REPLACED ssize_t send(int descriptor, const void *from, size_t size, int flags) {
    if (call_fails(MOVES_BYTES, &size, EPIPE))
        return -1;
    FORWARD(ssize_t, "send", (int, const void *, size_t, int), descriptor, from, size, flags);
}

/* A short one has the first part alone, or half of that. */
REPLACED ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    size_t size = message->msg_iovlen > 0 ? message->msg_iov[0].iov_len : 0;
    const size_t whole = size;
    if (call_fails(MOVES_BYTES, &size, EPIPE))
        return -1;
    struct iovec part = {.iov_len = size};
    struct msghdr shorter = *message;
    if (size < whole) {
        part.iov_base = message->msg_iov[0].iov_base;
        shorter.msg_iov = &part;
        shorter.msg_iovlen = 1;
        message = &shorter;
    }
    FORWARD(ssize_t, "sendmsg", (int, const struct msghdr *, int), descriptor, message, flags);
}

REPLACED int poll(struct pollfd *waited, nfds_t count, int limit) {
    if (call_fails(WAITS, NULL, ENOMEM))
        return -1;
    FORWARD(int, "poll", (struct pollfd *, nfds_t, int), waited, count, limit);
}

REPLACED int epoll_create1(int flags) {
    if (call_fails(PLAIN, NULL, EMFILE))
        return -1;
    FORWARD(int, "epoll_create1", (int), flags);
}

/* What is there is changed and removed without memory. */
REPLACED int epoll_ctl(int set, int action, int descriptor, struct epoll_event *event) {
    if (action == EPOLL_CTL_ADD && call_fails(PLAIN, NULL, ENOMEM))
        return -1;
    FORWARD(int, "epoll_ctl", (int, int, int, struct epoll_event *), set, action, descriptor, event);
}

/* It has no other error than this. */
REPLACED int epoll_wait(int set, struct epoll_event *events, int most, int limit) {
    if (call_fails(WAITS, NULL, EINTR))
        return -1;
    FORWARD(int, "epoll_wait", (int, struct epoll_event *, int, int), set, events, most, limit);
}

REPLACED int eventfd(unsigned count, int flags) {
    if (call_fails(PLAIN, NULL, EMFILE))
        return -1;
    FORWARD(int, "eventfd", (unsigned, int), count, flags);
}

REPLACED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                            void *user) {
    if (call_fails(PLAIN, NULL, EAGAIN))
        return EAGAIN;
    FORWARD(int, "pthread_create", (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), thread,
            attributes, run, user);
}
