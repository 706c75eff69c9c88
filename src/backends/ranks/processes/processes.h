/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that a launcher has started, of which each has one rank of every group (group.h): they are
 * connected with rank 0, which tells them what to do, and meet there. Each process of a rank other than 0
 * has two connections: one for tasks and what ranks share, one by which it is known to live.
 */
#ifndef GUMBEL_BACKENDS_RANKS_PROCESSES_PROCESSES_H
#define GUMBEL_BACKENDS_RANKS_PROCESSES_PROCESSES_H

#include "backends/ranks/group.h"
#include "backends/ranks/meeting_functions.h"
#include "backends/ranks/processes/launch.h"
#include "base/byte_buffer.h"

enum { GB_MOST_GROUPS = 16 };

/* Another process, as this one is connected with it. */
typedef struct gb_peer {
    int data, control; /* sockets; -1: none */
    char name[96];     /* "rank 1 (host, process 123)" */
    uint32_t silence;  /* for how many seconds nothing was heard of it */
} gb_peer;

struct gumbel_process_group {
    gb_meeting meeting; /* first, so that its functions find the rest */
    gb_launch launch;
    gb_peer peers[GB_MOST_RANKS]; /* of rank 0: by rank; of others: rank 0 alone */
    uint32_t first_peer, end_peer;
    gb_group *groups[GB_MOST_GROUPS];
    gb_byte_buffer message, shared; /* what was sent and what was received last */
    pthread_mutex_t running;        /* one task at a time */
    pthread_mutex_t telling;        /* one message at a time on the control connections */
    pthread_t watcher;
    int ending[2]; /* a pipe that ends the watcher */
    bool watches;
    atomic_bool is_leaving;                                    /* nobody is missed any more */
    void (*on_failure)(void *user, const gumbel_error *error); /* under `telling`, as its user */
    void *failure_user;
};

/* Connects with the others within so many seconds or little more. Errors: IO (who has not come), UNSUPPORTED
 * (a process of another version), ARGUMENT, MEMORY. */
gumbel_status gb_processes_join(const gb_launch *launch, uint32_t seconds, gumbel_process_group **processes,
                                gumbel_error *error);

/* Of rank 0 after its groups are destroyed: the others go, too. NULL is allowed. */
void gb_processes_leave(gumbel_process_group *processes);

static inline uint32_t gb_processes_count(const gumbel_process_group *processes) {
    return processes->launch.count;
}

static inline gb_meeting *gb_processes_meeting(gumbel_process_group *processes) {
    return &processes->meeting;
}

/* Numbers a group, which belongs to the caller. Thread-safe. Errors: ARGUMENT (there are GB_MOST_GROUPS). */
gumbel_status gb_processes_add_group(gumbel_process_group *processes, gb_group *group, gumbel_error *error);
void gb_processes_forget_group(gumbel_process_group *processes, const gb_group *group);

/* meeting_of_processes.c */
extern const gb_meeting_functions gb_meeting_of_processes;

/* A connection for data has failed, so that the other side is gone: breaks the meeting, unless the control
 * connection has said why by then. */
void gb_processes_lose(gumbel_process_group *processes, const gb_peer *peer);

/* watch.c: a thread that tells the others that this process lives, and breaks the meeting where one of them
 * has failed or is not heard of any more. False: no thread or pipe. */
bool gb_processes_watch(gumbel_process_group *processes);
void gb_processes_watch_end(gumbel_process_group *processes);

/* See gumbel_process_group_on_failure. */
void gb_processes_on_failure(gumbel_process_group *processes,
                             void (*on_failure)(void *user, const gumbel_error *error), void *user);

/* Tells all others why the meeting is broken. */
void gb_processes_tell(gumbel_process_group *processes, const gumbel_error *why);

/* Tells who has asked to hear it, once. */
void gb_processes_call_back(gumbel_process_group *processes, const gumbel_error *why);

#endif
