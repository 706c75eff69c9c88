/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/parser_errors.h"

#include "server/http/refusal.h"

#include <string.h>

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
