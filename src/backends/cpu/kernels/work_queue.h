/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that threads share out while they do it. Each begins with a range of its own, so that it reads long
 * stretches of memory, and takes pieces from its front that get smaller towards the end; whoever has nothing
 * left takes half of what another one has not begun. So threads that read memory at different speeds are done
 * at about the same time. Who does what changes no bits.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_WORK_QUEUE_H
#define GUMBEL_BACKENDS_CPU_KERNELS_WORK_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a thread has not begun: the first unit in the upper half, the end in the lower one. */
typedef struct gb_work_part {
    _Alignas(64) _Atomic uint64_t range;
} gb_work_part;

typedef struct gb_work_queue {
    gb_work_part *parts; /* [thread_count] */
    uint32_t thread_count;
    uint32_t units; /* of work */
    uint32_t least; /* that are worth taking, at least 1 */
} gb_work_queue;

/* Gives each thread its range of the queue's units. No thread may be taking. */
void gb_work_queue_fill(gb_work_queue *queue);

/* Takes units *first .. *end - 1 for a thread; false when nothing is left. Thread-safe for different indices.
 */
bool gb_work_queue_take(const gb_work_queue *queue, uint32_t index, size_t *first, size_t *end);

#endif
