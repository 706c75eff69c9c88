/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads the machine can run at once, for this process. Two hardware threads of one core share its
 * multipliers and its path to memory, so that more than one thread per core makes no kernel faster.
 */
#ifndef GUMBEL_BACKENDS_THREADS_CORES_H
#define GUMBEL_BACKENDS_THREADS_CORES_H

#include <stdbool.h>
#include <stddef.h>

/* Hardware threads that this process may use, and cores that have at least one of them; at least 1. Where the
 * system does not tell which threads share a core, each counts as one. Thread-safe. */
unsigned gb_available_threads(void);
unsigned gb_available_cores(void);

/* Whether this process was bound to other hardware threads than its parent, as launchers do; false where the
 * system does not tell. Thread-safe. */
bool gb_has_own_cores(void);

/* Cores among the hardware threads i < count with is_allowed[i]. directory: where the system describes them,
 * as Linux does in /sys/devices/system/cpu. */
unsigned gb_count_cores(const char *directory, const bool *is_allowed, size_t count);

#endif
