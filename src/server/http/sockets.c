/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 256 };

__attribute__((format(printf, 3, 4))) static gumbel_status fail(gumbel_error *error, gumbel_status status,
                                                                const char *format, ...) {
    va_list values;
    va_start(values, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, values);
    va_end(values);
    return status;
}

static bool is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int open_listener(const struct addrinfo *address) {
    const int yes = 1;
    const int made = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* old connections in TIME_WAIT */
    if (bind(made, address->ai_addr, address->ai_addrlen) == 0 && listen(made, BACKLOG) == 0)
        return made;
    const int reason = errno;
    close(made);
    errno = reason;
    return -1;
}

gumbel_status server_listen(const char *host, uint16_t port, int *listener, bool *is_local,
                            gumbel_error *error) {
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    const int refused = getaddrinfo(host, service, &wanted, &found);
    if (refused)
        return fail(error, GUMBEL_ERROR_ARGUMENT, "--host %s: %s", host, gai_strerror(refused));
    *listener = -1;
    for (const struct addrinfo *address = found; address && *listener < 0; address = address->ai_next) {
        *listener = open_listener(address);
        *is_local = is_loopback(address->ai_addr);
    }
    const int reason = errno;
    freeaddrinfo(found);
    if (*listener >= 0)
        return GUMBEL_OK;
    return fail(error, GUMBEL_ERROR_IO, "%s port %u: %s", host, port, strerror(reason));
}

/* A socket file that nobody listens on is left over from a server that was killed. */
static bool is_left_over(const struct sockaddr_un *address) {
    struct stat information;
    if (lstat(address->sun_path, &information) != 0 || !S_ISSOCK(information.st_mode))
        return false;
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_refused =
        connect(client, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    close(client);
    return is_refused;
}

gumbel_status server_listen_unix(const char *path, int *listener, gumbel_error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return fail(error, GUMBEL_ERROR_ARGUMENT, "--unix-socket: the path is longer than %zu bytes",
                    sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    if (is_left_over(&address))
        unlink(path);
    const struct addrinfo wanted = {
        .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&address, .ai_addrlen = sizeof address};
    *listener = open_listener(&wanted);
    return *listener >= 0 ? GUMBEL_OK
                          : fail(error, GUMBEL_ERROR_IO, "--unix-socket %s: %s", path, strerror(errno));
}

uint16_t server_port_of(int listener) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&address)->sin_port);
    return address.ss_family == AF_INET6
               ? ntohs(((const struct sockaddr_in6 *)(const void *)&address)->sin6_port)
               : 0;
}
