/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding top-k and top-p thresholds without sorting: weights are summed into bins of values, and only the
 * bin that holds the threshold is looked at again, in finer bins of the floats' own bits, down to one float.
 * All sums are integers, so their order does not matter. Nothing here allocates; thread-safe.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_SELECT_H
#define GUMBEL_BACKENDS_SAMPLER_SELECT_H

#include <stdbool.h>
#include <stdint.h>

/* The values to select from. Where keep is not NULL, values without keep count as -inf. NaNs are left out. */
typedef struct gb_values {
    const float *data;
    const bool *keep;
    uint32_t count;
} gb_values;

/* The largest value that is not NaN; -inf where there is none. */
float gb_largest(const gb_values *values);

/* The rank-th largest value (with repetition), 1 <= rank <= count; largest is at least gb_largest() and no
 * value of interest is below lowest. -inf where there are fewer. */
float gb_ranked(const gb_values *values, uint32_t rank, float lowest, float largest);

/* The sum of gb_mass(value, max) over count values. */
uint64_t gb_total_mass(const float *values, uint32_t count, float max);

enum { GB_BIN_BITS = 11 };

/* The masses of values by their distance from the largest, as a first step towards thresholds. */
typedef struct gb_mass_bins {
    const gb_values *values;
    float max;
    uint64_t total; /* mass */
    uint64_t sums[1 << GB_BIN_BITS];
} gb_mass_bins;

/* Sums the masses of values, which must stay. max is at least gb_largest() and above -inf. */
void gb_sum_masses(const gb_values *values, float max, gb_mass_bins *bins);

/* The smallest value such that the mass of all larger ones is at most limit; -inf where limit is the total
 * or more. */
float gb_mass_threshold(const gb_mass_bins *bins, uint64_t limit);

#endif
