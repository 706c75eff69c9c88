/* SPDX-License-Identifier: Apache-2.0
 *
 * The C library's allocation in whose place stands one that fails on demand and counts, for everything in the
 * process: this project's code, the libraries below it, the C library itself. Linking failing_malloc.c puts
 * it there.
 */
#ifndef GUMBEL_TESTS_FAILING_MALLOC_H
#define GUMBEL_TESTS_FAILING_MALLOC_H

#include <stddef.h>

/* From here on the failing-th allocation (from 1) fails, on whichever thread it is; 0: none. */
void begin_failing(size_t failing);

/* Allocations since then; from here on none fails. */
size_t end_failing(void);

/* Blocks that are allocated. */
size_t blocks_in_use(void);

#endif
