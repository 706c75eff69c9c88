/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes on a connection to the server, whose client then ends its side: what comes back begins as an HTTP
 * reply or is nothing, and the server closes the connection.
 */
#include "server/http/listener.h"
#include "support/temporary.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BODY = 1 << 16, PATIENCE_MS = 8000, MOST_REPLY = 1 << 20 };

/* Not a port, since thousands of connections a second would use up those of the other side. */
static struct sockaddr_un address = {.sun_family = AF_UNIX};

/* ---- The server ---------------------------------------------------------------------------------------- */

static bool admit(void *user, server_exchange *exchange) {
    (void)user;
    return strcmp(exchange->path, "/refused") != 0 || server_fail(&exchange->failure, 403, "refused");
}

static void handle(void *user, server_exchange *exchange) {
    (void)user;
    const server_failure *failure = &exchange->failure;
    const int status = failure->status != 0 ? failure->status : 200;
    if (status < 200 || status > 599)
        abort();
    server_add_header(exchange, "X-Length", "1");
    server_reply_json(exchange, status, json_pack("{s:i}", "bytes", (int)exchange->body.size));
}

static void done(void *user, int status) {
    (void)user;
    if (status < 200 || status > 599)
        abort();
}

static int new_listener(void) {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int length = snprintf(address.sun_path, sizeof address.sun_path, "%s", temporary_path("wire"));
    if (listener < 0 || length >= (int)sizeof address.sun_path ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 16) != 0) {
        perror("listener");
        abort();
    }
    return listener;
}

static void start_once(void) {
    static server_http http;
    static int listener;
    const server_http_options options = {.max_body_bytes = MOST_BODY,
                                         .max_connections = 64,
                                         .idle_seconds = 5,
                                         .request_seconds = 5,
                                         .send_seconds = 5,
                                         .admit = admit,
                                         .handle = handle,
                                         .done = done};
    gumbel_error error;
    if (listener > 0)
        return;
    listener = new_listener();
    if (server_http_start(&http, &options, &listener, 1, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
}

/* ---- The client ---------------------------------------------------------------------------------------- */

/* A server that has refused the rest may have closed already. */
static void send_all(int connection, const uint8_t *data, size_t size) {
    while (size > 0) {
        const ssize_t sent = send(connection, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data += sent;
        size -= (size_t)sent;
    }
    shutdown(connection, SHUT_WR);
}

static size_t read_all(int connection, char *reply) {
    size_t length = 0;
    for (;;) {
        struct pollfd ready = {.fd = connection, .events = POLLIN};
        if (poll(&ready, 1, PATIENCE_MS) == 0) {
            fprintf(stderr, "the server does not close the connection\n");
            abort();
        }
        const ssize_t got = recv(connection, reply + length, MOST_REPLY - length, 0);
        if (got <= 0)
            return length;
        length += (size_t)got;
    }
}

static void check_reply(const char *reply, size_t length) {
    if (length == 0 ||
        (length > 12 && strncmp(reply, "HTTP/1.", 7) == 0 && reply[9] >= '1' && reply[9] <= '5'))
        return;
    fprintf(stderr, "no reply: %.*s\n", (int)length, reply);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char reply[MOST_REPLY];
    start_once();
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("connection");
        abort();
    }
    send_all(connection, data, size);
    check_reply(reply, read_all(connection, reply));
    close(connection);
    return 0;
}
