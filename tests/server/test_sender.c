/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that writes streams: chunks on the socket, readers that are slow or leave, many at once.
 */
#include "server/http/sender.h"
#include "support/assertions.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { STREAMS = 16, BLOCK = 3000, MOST_READ = 1 << 22 };

/* Says so many numbered lines or blocks, one for each time that it is allowed to. */
typedef struct sayer {
    pthread_mutex_t lock;
    int (*wake)(void *waker);
    void *waker;
    uint32_t allowed, said, most;
    size_t size; /* of each */
    bool breaks; /* in place of its end */
    char bytes[BLOCK + 16];
} sayer;

static server_stream_state say(void *user, const char **bytes, size_t *length) {
    sayer *s = user;
    pthread_mutex_lock(&s->lock);
    *length = 0;
    if (s->said < s->allowed) {
        memset(s->bytes, 'a' + (int)(s->said % 26), s->size);
        *bytes = s->bytes;
        *length = s->size;
        s->said++;
    }
    const bool has_more = s->said < s->allowed;
    const server_stream_state state = s->said < s->most ? SERVER_STREAM_OPEN
                                      : s->breaks       ? SERVER_STREAM_BROKEN
                                                        : SERVER_STREAM_ENDED;
    const int descriptor = has_more && s->wake ? s->wake(s->waker) : -1;
    pthread_mutex_unlock(&s->lock);
    if (descriptor >= 0)
        eventfd_write(descriptor, 1);
    return state;
}

static void listen_to(void *user, int (*wake)(void *waker), void *waker) {
    sayer *s = user;
    pthread_mutex_lock(&s->lock);
    s->wake = wake;
    s->waker = waker;
    pthread_mutex_unlock(&s->lock);
}

static void allow(sayer *s, uint32_t more) {
    pthread_mutex_lock(&s->lock);
    s->allowed += more;
    const int descriptor = s->wake ? s->wake(s->waker) : -1;
    pthread_mutex_unlock(&s->lock);
    if (descriptor >= 0)
        eventfd_write(descriptor, 1);
}

static uint32_t count_said(sayer *s) {
    pthread_mutex_lock(&s->lock);
    const uint32_t said = s->said;
    pthread_mutex_unlock(&s->lock);
    return said;
}

/* A stream with a thread that waits for it, and the socket's other end. */
typedef struct stream {
    sayer sayer;
    server_peer peer;
    server_sender *sender;
    pthread_t thread;
    int other;
    bool is_whole;
} stream;

static void *wait_for_stream(void *user) {
    stream *s = user;
    const server_source source = {say, listen_to, NULL, &s->sayer};
    s->is_whole = server_sender_send(s->sender, &source, &s->peer);
    close(s->peer.socket);
    return NULL;
}

static void begin(stream *s, server_sender *sender, uint32_t most, size_t size) {
    int ends[2];
    const int small = 4096;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    *s = (stream){.sender = sender, .other = ends[1], .sayer = {.most = most, .size = size}};
    s->peer.socket = ends[0];
    pthread_mutex_init(&s->sayer.lock, NULL);
    pthread_create(&s->thread, NULL, wait_for_stream, s);
}

static void end(stream *s, bool is_whole) {
    pthread_join(s->thread, NULL);
    close(s->other);
    pthread_mutex_destroy(&s->sayer.lock);
    assert_int_equal(s->is_whole, is_whole);
    assert_null(s->sayer.wake);
}

/* Reads chunks to the end of the connection and checks that they are what the sayer says. */
static void assert_chunks(int other, uint32_t count, size_t size) {
    char *read_bytes = malloc(MOST_READ), *at = read_bytes;
    size_t total = 0;
    for (ssize_t got; (got = read(other, read_bytes + total, MOST_READ - total - 1)) > 0;)
        total += (size_t)got;
    read_bytes[total] = 0;
    for (uint32_t i = 0; i < count; i++) {
        char *behind;
        assert_int_equal(strtoul(at, &behind, 16), size);
        assert_memory_equal(behind, "\r\n", 2);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(behind[2 + j], 'a' + (int)(i % 26));
        assert_memory_equal(behind + 2 + size, "\r\n", 2);
        at = behind + 4 + size;
    }
    assert_int_equal(at - read_bytes, total);
    free(read_bytes);
}

static void chunks_are_written(void **state) {
    (void)state;
    server_sender sender = {0};
    stream s;
    char first[16] = "";
    assert_true(server_sender_start(&sender));
    begin(&s, &sender, 3, 5);
    allow(&s.sayer, 1);
    assert_int_equal(read(s.other, first, sizeof first), 10); /* at once, before there is more */
    assert_string_equal(first, "5\r\naaaaa\r\n");
    allow(&s.sayer, 2);
    end(&s, true);
    server_sender_stop(&sender);
}

/* The stream's thread may start as late as it likes; nobody reads, so that its socket stays full. */
static void wait_for_full_socket(stream *s) {
    while (atomic_load(&s->peer.phase) != SERVER_SENDING)
        sched_yield();
}

/* A socket that takes less than a chunk delays its stream alone. */
static void slow_readers_wait_for_themselves(void **state) {
    (void)state;
    server_sender sender = {0};
    stream slow, quick;
    assert_true(server_sender_start(&sender));
    begin(&slow, &sender, 400, BLOCK);
    allow(&slow.sayer, 400);
    wait_for_full_socket(&slow);
    begin(&quick, &sender, 50, 5);
    allow(&quick.sayer, 50);
    assert_chunks(quick.other, 50, 5);
    end(&quick, true);
    assert_true(count_said(&slow.sayer) < 400); /* it is not read while its socket is full */
    assert_int_equal(atomic_load(&slow.peer.phase), SERVER_SENDING);
    assert_chunks(slow.other, 400, BLOCK);
    end(&slow, true);
    server_sender_stop(&sender);
}

static void many_streams(void **state) {
    (void)state;
    server_sender sender = {0};
    static stream streams[STREAMS];
    assert_true(server_sender_start(&sender));
    for (int i = 0; i < STREAMS; i++)
        begin(&streams[i], &sender, 100, 7);
    for (int step = 0; step < 100; step++)
        for (int i = 0; i < STREAMS; i++)
            allow(&streams[i].sayer, 1);
    for (int i = 0; i < STREAMS; i++) {
        assert_chunks(streams[i].other, 100, 7);
        end(&streams[i], true);
    }
    server_sender_stop(&sender);
}

/* A reader that leaves is seen while there is nothing to write, and while its socket is full. */
static void readers_leave(void **state) {
    (void)state;
    server_sender sender = {0};
    stream idle, full;
    assert_true(server_sender_start(&sender));
    begin(&idle, &sender, 10, 5);
    begin(&full, &sender, 400, BLOCK);
    allow(&full.sayer, 400);
    shutdown(idle.other, SHUT_WR);
    end(&idle, false);
    wait_for_full_socket(&full);
    shutdown(full.other, SHUT_RDWR);
    end(&full, false);
    server_sender_stop(&sender);
}

static void broken_streams_end(void **state) {
    (void)state;
    server_sender sender = {0};
    stream s;
    assert_true(server_sender_start(&sender));
    begin(&s, &sender, 2, 5);
    pthread_mutex_lock(&s.sayer.lock);
    s.sayer.breaks = true;
    pthread_mutex_unlock(&s.sayer.lock);
    allow(&s.sayer, 2);
    end(&s, false);
    server_sender_stop(&sender);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_written), cmocka_unit_test(slow_readers_wait_for_themselves),
        cmocka_unit_test(many_streams),       cmocka_unit_test(readers_leave),
        cmocka_unit_test(broken_streams_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
