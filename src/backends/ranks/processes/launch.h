/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launcher tells each process that it has started by variables of its environment: which rank of how
 * many it is, and where rank 0 is found. torchrun, Open MPI's and MPICH's mpirun, Slurm's srun.
 */
#ifndef GUMBEL_BACKENDS_RANKS_PROCESSES_LAUNCH_H
#define GUMBEL_BACKENDS_RANKS_PROCESSES_LAUNCH_H

#include "base/status.h"

#include <stdint.h>

typedef struct gb_launch {
    uint32_t rank, count;
    uint32_t local_rank, local_count; /* among those of this host */
    char job[96];                     /* the same for all of the launch, as far as the launcher names it */
    char path[104];                   /* of a socket, where all are on one host; "" otherwise */
    char host[256], port[8];
} gb_launch;

/* Errors: ARGUMENT (no launcher's variables, or some that say nothing sensible; how to say where rank 0 is).
 */
gumbel_status gb_launch_read(gb_launch *launch, gumbel_error *error);

#endif
