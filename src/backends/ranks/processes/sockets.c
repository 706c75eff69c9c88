/* SPDX-License-Identifier: Apache-2.0 */
#ifdef __linux__
#define _GNU_SOURCE /* struct ucred */
#endif
#include "backends/ranks/processes/sockets.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTING = 5 /* seconds, to a host that says nothing */ };

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS has SO_NOSIGPIPE */
#endif

/* ---- Kinds of sockets ---------------------------------------------------------------------------------- */

static int new_socket(int family) {
    const int made = socket(family, SOCK_STREAM, 0);
    if (made >= 0)
        fcntl(made, F_SETFD, FD_CLOEXEC);
    return made;
}

/* Small messages leave at once, and writing to who has gone raises no signal. */
static void prepare(int made) {
    const int yes = 1;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
#ifdef SO_NOSIGPIPE
    setsockopt(made, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
    fcntl(made, F_SETFD, FD_CLOEXEC);
}

static struct sockaddr_un path_address(const gb_launch *launch) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, launch->path, strnlen(launch->path, sizeof address.sun_path - 1));
    return address;
}

static bool is_own_user(int made) {
#ifdef SO_PEERCRED
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(made, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
#else
    uid_t user = 0;
    gid_t group = 0;
    return getpeereid(made, &user, &group) == 0 && user == getuid();
#endif
}

static gumbel_status look_up(const gb_launch *launch, bool listens, struct addrinfo **found,
                             gumbel_error *error) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0)};
    const bool is_local = strcmp(launch->host, "localhost") == 0 || strncmp(launch->host, "127.", 4) == 0;
    const int failure = getaddrinfo(listens && !is_local ? NULL : launch->host, launch->port, &hints, found);
    if (failure == 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_IO, "the host of rank 0, %.200s: %s", launch->host,
                   gai_strerror(failure));
}

void gb_limit_waiting(int made, uint32_t seconds) {
    const struct timeval limit = {.tv_sec = seconds};
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static int connect_to(int family, const struct sockaddr *address, socklen_t size) {
    const int made = new_socket(family);
    gb_limit_waiting(made, CONNECTING);
    if (made >= 0 && connect(made, address, size) == 0 && (family != AF_UNIX || is_own_user(made))) {
        prepare(made);
        gb_limit_waiting(made, 0);
        return made;
    }
    if (made >= 0)
        close(made);
    return -1;
}

/* ---- Listening ----------------------------------------------------------------------------------------- */

static int listen_at(int family, const struct sockaddr *address, socklen_t size) {
    enum { WAITING = 64 };
    const int yes = 1, no = 0, made = new_socket(family);
    if (made < 0)
        return -1;
    fcntl(made, F_SETFL, O_NONBLOCK);
    if (family != AF_UNIX)
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(made, address, size) == 0 && listen(made, WAITING) == 0)
        return made;
    const int why = errno;
    close(made);
    errno = why;
    return -1;
}

/* A file that nobody listens at was left by a killed process. */
static int listen_at_path(const gb_launch *launch) {
    const struct sockaddr_un address = path_address(launch);
    const int other = connect_to(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
    if (other >= 0) {
        close(other);
        errno = EADDRINUSE;
        return -1;
    }
    unlink(launch->path);
    return listen_at(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

/* One of IPv6 takes both kinds of addresses. */
static int listen_at_any(const struct addrinfo *found) {
    int listener = -1;
    for (const struct addrinfo *a = found; a && listener < 0; a = a->ai_next)
        if (a->ai_family == AF_INET6)
            listener = listen_at(a->ai_family, a->ai_addr, a->ai_addrlen);
    for (const struct addrinfo *a = found; a && listener < 0; a = a->ai_next)
        listener = listen_at(a->ai_family, a->ai_addr, a->ai_addrlen);
    return listener;
}

gumbel_status gb_listen(const gb_launch *launch, int *listener, gumbel_error *error) {
    struct addrinfo *found = NULL;
    *listener = -1;
    if (launch->path[0]) {
        *listener = listen_at_path(launch);
        return *listener >= 0 ? GUMBEL_OK : gb_fail_errno(error, errno, "listening at %s", launch->path);
    }
    GB_TRY(look_up(launch, true, &found, error));
    *listener = listen_at_any(found);
    const int why = errno;
    freeaddrinfo(found);
    return *listener >= 0 ? GUMBEL_OK
                          : gb_fail_errno(error, why, "listening at port %s (MASTER_PORT)", launch->port);
}

void gb_listen_end(const gb_launch *launch, int listener) {
    if (listener < 0)
        return;
    close(listener);
    if (launch->path[0])
        unlink(launch->path);
}

int gb_accept(const gb_launch *launch, int listener, int milliseconds) {
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    if (poll(&wait, 1, milliseconds) <= 0)
        return -1;
    const int made = accept(listener, NULL, NULL);
    if (made >= 0)
        fcntl(made, F_SETFL, 0); /* not what a listener has that does not block */
    if (made >= 0 && launch->path[0] && !is_own_user(made)) {
        close(made);
        return -1;
    }
    if (made >= 0)
        prepare(made);
    return made;
}

/* ---- Connecting ---------------------------------------------------------------------------------------- */

static gumbel_status connect_once(const gb_launch *launch, int *made, gumbel_error *error) {
    struct addrinfo *found = NULL;
    *made = -1;
    if (launch->path[0]) {
        const struct sockaddr_un address = path_address(launch);
        *made = connect_to(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
        return GUMBEL_OK;
    }
    GB_TRY(look_up(launch, false, &found, error));
    for (const struct addrinfo *a = found; a && *made < 0; a = a->ai_next)
        *made = connect_to(a->ai_family, a->ai_addr, a->ai_addrlen);
    freeaddrinfo(found);
    return GUMBEL_OK;
}

gumbel_status gb_connect(const gb_launch *launch, double seconds, int *made, gumbel_error *error) {
    const struct timespec pause = {.tv_nsec = 50000000};
    const double end = gb_seconds() + seconds;
    for (;;) {
        const gumbel_status status = connect_once(launch, made, error);
        if (*made >= 0)
            return GUMBEL_OK;
        if (gb_seconds() > end)
            return status != GUMBEL_OK
                       ? status
                       : gb_fail(error, GUMBEL_ERROR_IO, "rank 0 does not answer at %s%s%s",
                                 launch->path[0] ? launch->path : launch->host, launch->path[0] ? "" : ":",
                                 launch->path[0] ? "" : launch->port);
        nanosleep(&pause, NULL);
    }
}

gumbel_status gb_connect_again(const gb_launch *launch, int first, int *made, gumbel_error *error) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    *made = -1;
    if (launch->path[0])
        GB_TRY(connect_once(launch, made, error));
    else if (getpeername(first, (struct sockaddr *)&address, &size) == 0)
        *made = connect_to(address.ss_family, (const struct sockaddr *)&address, size);
    return *made >= 0 ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_IO, "rank 0 has ended");
}

/* ---- Bytes --------------------------------------------------------------------------------------------- */

/* Takes off what was sent. */
static void skip(struct iovec *parts, size_t sent) {
    for (size_t i = 0; i < 2; i++) {
        const size_t part = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        parts[i].iov_base = (char *)parts[i].iov_base + part;
        parts[i].iov_len -= part;
        sent -= part;
    }
}

bool gb_send_all(int made, const void *head, size_t head_size, const void *body, size_t body_size) {
    char nothing = 0;
    struct iovec parts[] = {{(void *)(uintptr_t)head, head_size},
                            {body_size ? (void *)(uintptr_t)body : &nothing, body_size}};
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        const ssize_t sent = sendmsg(made, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        skip(parts, (size_t)sent);
    }
    return true;
}

bool gb_receive_all(int made, void *data, size_t size) {
    for (size_t at = 0; at < size;) {
        const ssize_t got = recv(made, (char *)data + at, size - at, MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}
