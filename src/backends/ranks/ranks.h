/* SPDX-License-Identifier: Apache-2.0
 *
 * One backend made of several, the ranks: each has a device, a thread or a process, and its part of the
 * program (program/shard/shard.h), and all do everything together. Rank 0's results are the engine's.
 */
#ifndef GUMBEL_BACKENDS_RANKS_RANKS_H
#define GUMBEL_BACKENDS_RANKS_RANKS_H

#include "backends/backend.h"

typedef struct gb_devices {
    const int *numbers;
    uint32_t count;                  /* 2 .. GB_MOST_RANKS, of threads */
    int64_t least_weights;           /* see gb_shard_options; 0: GB_LEAST_SHARDED_WEIGHTS */
    gumbel_process_group *processes; /* NULL, or those that have a rank each, this one rank 0 (processes.h) */
    const char *backend;             /* its name, which all processes must have */
} gb_devices;

/* Creates a rank on each device by that function, with options whose rank and device it sets; threads are
 * shared out. Or a rank in each process, with this one's device and threads here. program must outlive the
 * backend. Once a rank has failed in a step all that follows fails. Errors: those of gb_program_shard and of
 * the function, with the number of the device or the rank. */
gumbel_status gb_ranks_backend_create(gb_backend_create create, const gb_program *program,
                                      const gb_backend_options *options, const gb_devices *devices,
                                      gb_backend **backend, gumbel_error *error);

#endif
