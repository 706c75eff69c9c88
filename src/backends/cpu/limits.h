/* SPDX-License-Identifier: Apache-2.0
 *
 * What bounds every kernel on this machine: how fast a team of threads reads memory, and how many 8-bit
 * products it can add up.
 */
#ifndef GUMBEL_BACKENDS_CPU_LIMITS_H
#define GUMBEL_BACKENDS_CPU_LIMITS_H

#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "backends/threads/team.h"

/* Measures with thread_count threads, those of the team, and these kernels. Reading: the mean of a tenth of a
 * second, since the bandwidth of a machine that others share is what it is at the time. Products: the best of
 * some tries, since all that can disturb them makes them slower. Errors: MEMORY. */
gumbel_status gb_measure_limits(gb_team *team, unsigned thread_count, const gb_vector_kernels *vector,
                                gumbel_machine_limits *limits, gumbel_error *error);

#endif
