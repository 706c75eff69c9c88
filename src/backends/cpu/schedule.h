/* SPDX-License-Identifier: Apache-2.0
 *
 * Which thread does what of a step, and where the threads must meet. Most steps read what the step before
 * wrote; a barrier between them is needed only where a thread would read what another one wrote, or write
 * what another one still reads. Where both steps share the bytes out in the same way each thread goes on with
 * its own, so that a chain such as gate, activation, up, product, or norm, sum, norm, is one stage between
 * two barriers. How steps are split changes no bits.
 */
#ifndef GUMBEL_BACKENDS_CPU_SCHEDULE_H
#define GUMBEL_BACKENDS_CPU_SCHEDULE_H

#include "backends/cpu/kernels/kernels.h"

enum { GB_MAX_OPEN_ACCESSES = 96 };

/* Bytes that a step since the last barrier reads or writes, and how its threads share them. */
typedef struct gb_access {
    const uint8_t *first, *end;
    size_t tokens, columns; /* the tensor's first and last dim */
    gb_split split;
    bool is_write;
} gb_access;

typedef struct gb_schedule {
    const uint8_t *shared; /* the kernels' shared memory */
    gb_access open[GB_MAX_OPEN_ACCESSES];
    size_t open_count;
} gb_schedule;

/* Begins a batch, in which the kernels' shared memory is there. */
void gb_schedule_begin(gb_schedule *schedule, const void *shared);

/* Forgets all accesses: all threads have met. */
void gb_schedule_meet(gb_schedule *schedule);

/* Chooses how the threads split the next step, of a kernel with these traits: in a way that needs no barrier
 * if there is one, otherwise in the preferred way, which is one of the kernel's or GB_SPLIT_ALONE. Sets
 * *split and returns whether the threads must meet before the step. */
bool gb_schedule_step(gb_schedule *schedule, const gb_kernel_call *call, const gb_kernel_traits *traits,
                      gb_split preferred, gb_split *split);

#endif
