/* SPDX-License-Identifier: Apache-2.0
 *
 * What a meeting is made of, for its two kinds: of threads, and of processes.
 */
#ifndef GUMBEL_BACKENDS_RANKS_MEETING_FUNCTIONS_H
#define GUMBEL_BACKENDS_RANKS_MEETING_FUNCTIONS_H

#include "backends/ranks/meeting.h"

#include <pthread.h>
#include <stdatomic.h>

/* As the gb_rank_ functions, for more than one rank. */
typedef struct gb_meeting_functions {
    void (*destroy)(gb_meeting *meeting);
    bool (*meet)(gb_meeting *meeting, uint32_t index);
    bool (*share)(gb_meeting *meeting, uint32_t index, const void *mine, size_t size,
                  const void *all[GB_MOST_RANKS]);
    bool (*release)(gb_meeting *meeting, uint32_t index);
    bool has_threads;
    void (*wake)(gb_meeting *meeting); /* lets all who wait go on: the meeting was broken just now */
} gb_meeting_functions;

/* Two exchanges of each rank: of a program and its draft head, and one that is made anew. */
enum { GB_MOST_STOPS = 4 * GB_MOST_RANKS };

/* The first member of both. */
struct gb_meeting {
    const gb_meeting_functions *functions;
    uint32_t ranks;
    pthread_mutex_t mutex;
    atomic_bool is_broken;
    gumbel_error why;
    volatile uint32_t *stops[GB_MOST_STOPS]; /* NULL: none */
};

#endif
