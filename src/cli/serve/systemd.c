/* SPDX-License-Identifier: Apache-2.0
 *
 * systemd's protocols of sockets and of readiness, which are an environment variable each.
 */
#include "cli/serve/serve.h"

#include "base/portable.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_SOCKET = 3 };

size_t serve_inherited_sockets(int *first) {
    const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    *first = FIRST_SOCKET;
    if (!process || !count || strtol(process, NULL, 10) != getpid())
        return 0;
    const long sockets = strtol(count, NULL, 10);
    for (long i = 0; i < sockets; i++) {
        fcntl(FIRST_SOCKET + (int)i, F_SETFD, FD_CLOEXEC);
        fcntl(FIRST_SOCKET + (int)i, F_SETFL, O_NONBLOCK);
    }
    return sockets > 0 ? (size_t)sockets : 0;
}

static int systemd = -1; /* a socket that is connected to it */

void serve_connect_systemd(void) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof address.sun_path)
        return;
    strcpy(address.sun_path, path);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* an abstract name */
    systemd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (systemd >= 0)
        (void)connect(systemd, (const struct sockaddr *)&address,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
}

void serve_notify(const char *state) {
    if (systemd >= 0)
        send(systemd, state, strlen(state), MSG_NOSIGNAL);
}
