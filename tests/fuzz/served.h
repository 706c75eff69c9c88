/* SPDX-License-Identifier: Apache-2.0
 *
 * A server in a process of its own, whose standard error is a file, and a small client for it.
 */
#ifndef GUMBEL_TESTS_SERVED_H
#define GUMBEL_TESTS_SERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SERVED_SECONDS = 20 }; /* what takes longer hangs */

typedef struct served {
    pid_t process;
    int status; /* once it has ended: exit status, or 128 + the signal; -1: it hangs and was killed */
    unsigned port;
} served;

/* Starts words[0] with the words up to NULL. Returns whether it listens; false: it has ended. */
bool start_server(served *server, const char *const *words);

/* Sends SIGTERM and waits for the end. */
void end_server(served *server);

/* Waits until text stands in what it has said; false: it does not within the time. */
bool await_said(const char *text);

/* All of it, valid until the next call. */
const char *said_by_server(void);

size_t descriptors_of_server(const served *server);

typedef struct reply {
    int status; /* 0: the connection was closed before there was one */
    bool is_whole, has_timed_out;
    char body[1 << 16]; /* without the marks of chunks */
} reply;

/* One request on a connection of its own. body NULL: GET. */
void ask_server(const served *server, const char *path, const char *body, reply *given);

#endif
