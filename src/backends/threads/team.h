/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixed team of threads that do the same work together and meet at barriers. The thread that calls
 * gb_team_run is number 0. A thread that waits for work spins for some 50 microseconds and then sleeps, so
 * that the teams of several engines take no cores from each other while they have nothing to do; one that
 * waits for others at work spins four times as long.
 */
#ifndef GUMBEL_BACKENDS_THREADS_TEAM_H
#define GUMBEL_BACKENDS_THREADS_TEAM_H

#include "base/status.h"

#include <stdbool.h>

typedef struct gb_team gb_team;

/* What each thread of a run executes; index is 0 .. count - 1. */
typedef void (*gb_team_work)(void *user, unsigned index);

/* Starts count - 1 threads, count >= 1. They block all signals. Errors: MEMORY. */
gumbel_status gb_team_create(unsigned count, gb_team **team, gumbel_error *error);

/* Ends the threads. NULL is allowed. */
void gb_team_destroy(gb_team *team);

/* What a thread may do while it waits: a little, for much less than a microsecond; false when nothing is
 * left. */
typedef bool (*gb_team_pastime)(void *user);

/* Calls work on every thread and returns when all have returned. One run at a time; does not allocate. */
void gb_team_run(gb_team *team, gb_team_work work, void *user);

/* Waits until every thread of the run is here. Each must call it equally often. What any thread wrote before
 * it is seen by all after it. */
void gb_team_wait(gb_team *team);

/* The same; as long as others are awaited, calls pastime until that has nothing left to do. */
void gb_team_wait_with(gb_team *team, gb_team_pastime pastime, void *user);

#endif
