/* SPDX-License-Identifier: Apache-2.0
 *
 * Time, for reports of how long something took.
 */
#ifndef GUMBEL_BASE_CLOCK_H
#define GUMBEL_BASE_CLOCK_H

#include <time.h>

/* Seconds on a clock that never goes back. */
static inline double gb_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
