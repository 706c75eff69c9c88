/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop over independent items on all cores.
 */
#ifndef GUMBEL_EXPORT_PARALLEL_H
#define GUMBEL_EXPORT_PARALLEL_H

#include <stddef.h>

enum { GB_MAX_EXPORT_THREADS = 256 };

/* Does items first .. end - 1; thread is below the number of threads, and one item's alone. */
typedef void (*gb_parallel_work)(void *user, unsigned thread, size_t first, size_t end);

/* Cores that there are, 1 .. GB_MAX_EXPORT_THREADS. */
unsigned gb_export_threads(void);

/* Cuts 0 .. count - 1 into one range for each of `threads` threads, the caller's among them, and returns when
 * all are done. Where the system refuses a thread the caller does its range. */
void gb_parallel_for(unsigned threads, size_t count, gb_parallel_work work, void *user);

#endif
