/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/http/transport.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STREAM_BLOCK = 4096, TICK_MILLISECONDS = 1000 };

typedef struct stream {
    server_source source;
    server_peer *peer;
    server_sender *sender; /* NULL: libmicrohttpd writes */
    int wake;              /* an eventfd, while libmicrohttpd writes */
    server_stream_state state;
    const char *bytes; /* that the source gave last */
    size_t length;
} stream;

/* Chunks are HTTP/1.1's, and what a socket carries under TLS is not the server's to write. */
static bool is_for_sender(const server_peer *peer, const char *version) {
    return peer && !peer->has_tls && strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
}

static ssize_t end_of(server_stream_state state) {
    return state == SERVER_STREAM_ENDED ? MHD_CONTENT_READER_END_OF_STREAM
                                        : MHD_CONTENT_READER_END_WITH_ERROR;
}

static int wake(void *waker) {
    return ((const stream *)waker)->wake;
}

/* Until there is more, or the source may have a ping to send. False: the client has left. */
static bool wait_for_more(const stream *s) {
    struct pollfd waited[] = {{.fd = s->wake, .events = POLLIN},
                              {.fd = s->peer ? s->peer->socket : -1, .events = POLLRDHUP}};
    eventfd_t count;
    poll(waited, 2, TICK_MILLISECONDS);
    eventfd_read(s->wake, &count);
    return waited[1].revents == 0;
}

static void read_source(stream *s) {
    server_peer_enter(s->peer, SERVER_ANSWERING);
    do
        s->state = s->source.read(s->source.user, &s->bytes, &s->length);
    while (s->state == SERVER_STREAM_OPEN && s->length == 0 && wait_for_more(s));
    if (s->state == SERVER_STREAM_OPEN && s->length == 0)
        s->state = SERVER_STREAM_BROKEN;
    server_peer_enter(s->peer, SERVER_SENDING);
}

/* Called when all before has been sent. */
static ssize_t read_stream(void *user, uint64_t position, char *bytes, size_t capacity) {
    (void)position;
    stream *s = user;
    if (s->sender)
        return end_of(server_sender_send(s->sender, &s->source, s->peer) ? SERVER_STREAM_ENDED
                                                                         : SERVER_STREAM_BROKEN);
    if (s->length == 0 && s->state == SERVER_STREAM_OPEN)
        read_source(s);
    const size_t taken = s->length < capacity ? s->length : capacity;
    if (taken == 0 || s->state == SERVER_STREAM_BROKEN)
        return end_of(s->state);
    memcpy(bytes, s->bytes, taken);
    s->bytes += taken;
    s->length -= taken;
    return (ssize_t)taken;
}

static void free_stream(void *user) {
    stream *s = user;
    if (s->wake >= 0) {
        s->source.listen(s->source.user, NULL, NULL);
        close(s->wake);
    }
    s->source.free(s->source.user);
    free(s);
}

/* False: the system has no descriptor. */
static bool begin_waiting(stream *s) {
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake >= 0)
        s->source.listen(s->source.user, wake, s);
    return s->wake >= 0;
}

struct MHD_Response *server_stream_response(const server_source *source, server_sender *sender,
                                            server_peer *peer, const char *version) {
    stream *s = malloc(sizeof *s);
    if (!s) {
        source->free(source->user);
        return NULL;
    }
    *s = (stream){.source = *source, .peer = peer, .wake = -1};
    s->sender = is_for_sender(peer, version) ? sender : NULL;
    struct MHD_Response *response = NULL;
    if (s->sender || begin_waiting(s))
        response =
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, free_stream);
    if (!response)
        free_stream(s);
    return response;
}
