/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmarks of the scheduler and the server share: errors, numbers of the command line, medians.
 */
#ifndef GUMBEL_BENCH_ARGUMENTS_H
#define GUMBEL_BENCH_ARGUMENTS_H

#include "gumbel.h"

#include <stdio.h>
#include <stdlib.h>

static inline void must(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static inline uint32_t number_at(int count, char **words, int index, uint32_t otherwise) {
    return count > index ? (uint32_t)strtoul(words[index], NULL, 10) : otherwise;
}

static inline int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median_of(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_numbers);
    return values[count / 2];
}

#endif
