/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/refusal.h"

#include "base/clock.h"
#include "server/base/json.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { LINGER_MILLISECONDS = 1000, MOST_READS = 64 };

static void print_date(gb_byte_buffer *text) {
    char date[40];
    struct tm parts;
    const time_t now = time(NULL);
    if (strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts)) > 0)
        gb_buffer_print(text, "Date: %s\r\n", date);
}

static void print_reply(gb_byte_buffer *text, const server_failure *failure, const gb_byte_buffer *body) {
    gb_buffer_print(text, "HTTP/1.1 %d %s\r\n", failure->status,
                    MHD_get_reason_phrase_for((unsigned)failure->status));
    print_date(text);
    if (failure->retry_seconds > 0)
        gb_buffer_print(text, "Retry-After: %d\r\n", failure->retry_seconds);
    gb_buffer_print(text,
                    "Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
                    "Connection: close\r\nContent-Length: %zu\r\n\r\n",
                    body->size);
    gb_buffer_append(text, body->text, body->size);
}

void server_send_refusal(int socket, const server_failure *failure) {
    gb_byte_buffer body = {0}, reply = {0};
    json_t *error = server_openai_error(failure);
    server_print_json(&body, error);
    gb_buffer_append(&body, "\n", 1);
    json_decref(error);
    print_reply(&reply, failure, &body);
    if (!body.failed && !reply.failed)
        send(socket, reply.text, reply.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(socket, SHUT_WR);
    gb_buffer_free(&body);
    gb_buffer_free(&reply);
}

bool server_drop_input(int socket) {
    char bytes[4096];
    for (int i = 0; i < MOST_READS; i++) {
        const ssize_t length = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length == 0 || (length < 0 && errno != EINTR))
            return length < 0 && errno == EAGAIN;
    }
    return true;
}

void server_linger(int socket) {
    const double end = gb_seconds() + 1e-3 * LINGER_MILLISECONDS;
    struct pollfd waited = {.fd = socket, .events = POLLIN};
    while (server_drop_input(socket) && gb_seconds() < end)
        poll(&waited, 1, LINGER_MILLISECONDS);
}

/* ---- Malformed requests -------------------------------------------------------------------------------- */

/* The log does not say whose it is. */
static _Thread_local server_peer *thread_peer;

void server_set_thread_peer(server_peer *peer) {
    thread_peer = peer;
}

static void describe(unsigned status, server_failure *failure) {
    switch (status) {
    case 413:
        server_fail(failure, 413,
                    "Content-Length, or a chunk's, is larger than any body may be (--max-body)");
        break;
    case 414:
    case 431:
        server_fail(failure, (int)status, "the request line and headers are larger than 32 KiB");
        break;
    case 500: /* its buffer is full, and there is no whole line in it */
        server_fail(failure, 413, "the line before a chunk is larger than 32 KiB");
        break;
    case 505:
        server_fail(failure, 505, "only HTTP/1.1 and HTTP/1.0 are known");
        break;
    default:
        server_fail(failure, 400, "a header, Content-Length or a chunk is malformed");
    }
}

int server_reply_to_parser_error(const char *format, va_list values) {
    static const char reported[] = "Error processing request (HTTP response code is %u";
    server_peer *peer = thread_peer;
    if (!peer || peer->has_tls || strncmp(format, reported, sizeof reported - 1) != 0 ||
        atomic_load(&peer->phase) >= SERVER_ANSWERING) /* a reply may have begun */
        return 0;
    server_failure failure;
    describe(va_arg(values, unsigned), &failure);
    server_peer_enter(peer, SERVER_CLOSING);
    server_send_refusal(peer->socket, &failure);
    server_linger(peer->socket);
    return failure.status;
}
