/* SPDX-License-Identifier: Apache-2.0
 *
 * What the process of a rank other than 0 does: the tasks that rank 0 sends, until that leaves.
 */
#ifndef GUMBEL_BACKENDS_RANKS_PROCESSES_FOLLOW_H
#define GUMBEL_BACKENDS_RANKS_PROCESSES_FOLLOW_H

#include "backends/ranks/processes/processes.h"

typedef struct gb_followed {
    const gb_program *const *programs; /* those that rank 0 may run */
    size_t program_count;
    gb_backend_create create;
    const char *backend;        /* its name, which rank 0's has */
    gb_backend_options options; /* what each process has for itself: device, threads, instruction set, lock */
} gb_followed;

/* Returns when rank 0 has left. Errors: why ranks go on no more. */
gumbel_status gb_processes_follow(gumbel_process_group *processes, const gb_followed *followed,
                                  gumbel_error *error);

#endif
