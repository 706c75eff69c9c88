/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0's side of a task: it tells the other processes, runs its own rank and collects what they say.
 */
#ifndef GUMBEL_BACKENDS_RANKS_PROCESSES_RUN_ON_ALL_H
#define GUMBEL_BACKENDS_RANKS_PROCESSES_RUN_ON_ALL_H

#include "backends/ranks/processes/processes.h"

/* Leaves the outcome of every rank in task->all. One task at a time; thread-safe. */
void gb_processes_run(const gb_group_task *task);

/* Tells the others to go, and waits until they do. */
void gb_processes_dismiss(gumbel_process_group *processes);

#endif
