/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the ranks of one program meet: each is a backend with a part of the program, and all run the same
 * steps, by a thread each in one process or by a process each. They give each other bytes and agree on how
 * something ended.
 */
#ifndef GUMBEL_BACKENDS_RANKS_MEETING_H
#define GUMBEL_BACKENDS_RANKS_MEETING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GB_MOST_RANKS = 16 };

typedef struct gb_meeting gb_meeting;

/* Which rank of how many. Where count is below 2 there is no meeting. */
typedef struct gb_rank {
    uint32_t index, count;
    gb_meeting *meeting;
} gb_rank;

/* Of 1 .. GB_MOST_RANKS ranks that are threads. Errors: MEMORY. */
gumbel_status gb_meeting_create(uint32_t ranks, gb_meeting **meeting, gumbel_error *error);

/* NULL is allowed. */
void gb_meeting_destroy(gb_meeting *meeting);

/* Lets all who wait go on, now and later, because a rank has failed and will not come; the first reason
 * stays. Thread-safe. */
void gb_meeting_break(gb_meeting *meeting, const gumbel_error *why);

/* Waits until every rank is here. What any wrote before it is seen by all after it. False: the meeting is
 * broken, and others may still be elsewhere. True at once for a rank that is alone. */
bool gb_rank_meet(const gb_rank *rank);

/* Waits until every rank has given its bytes, as many as the others; all[r] becomes the address of those of
 * rank r, which stay until gb_rank_release. False: broken. */
bool gb_rank_share(const gb_rank *rank, const void *mine, size_t size, const void *all[GB_MOST_RANKS]);

/* After gb_rank_share: this rank has read what it wanted, and its own bytes may change after this has
 * returned. False: broken. */
bool gb_rank_release(const gb_rank *rank);

/* Waits for the outcome of every rank: GUMBEL_OK where all have it, otherwise the status and message of the
 * first that failed, the same for all and behind "rank N: ". Errors: those; why the meeting is broken. */
gumbel_status gb_rank_agree(const gb_rank *rank, gumbel_status status, gumbel_error *error);

/* Whether the ranks are threads of one process, so that an address of one means the same to the others. */
bool gb_rank_has_threads(const gb_rank *rank);

/* A word of this rank that becomes 1 when the meeting breaks, at once if it is: what a device that waits for
 * others looks at. It stays until gb_rank_remove_stop. Thread-safe. False: there are too many. */
bool gb_rank_add_stop(const gb_rank *rank, volatile uint32_t *word);
void gb_rank_remove_stop(const gb_rank *rank, const volatile uint32_t *word);

bool gb_rank_is_broken(const gb_rank *rank);

/* Why the meeting is broken, for a rank that was told so. */
gumbel_status gb_rank_broken(const gb_rank *rank, gumbel_error *error);

#endif
