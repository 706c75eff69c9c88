/* SPDX-License-Identifier: Apache-2.0
 *
 * How the inputs of a product go together: X^T X over all rows X that it has taken in, for blocks of
 * neighbouring inputs. What lies outside the blocks is left out, so that memory grows with the inputs and not
 * with their square.
 */
#ifndef GUMBEL_EXPORT_CALIBRATE_CORRELATIONS_H
#define GUMBEL_EXPORT_CALIBRATE_CORRELATIONS_H

#include "export/quantize/feedback.h"

typedef struct gb_correlations {
    uint64_t columns, block; /* a power of two; the last block is what is left */
    float *sums;             /* owned: of each block [size, size], the upper triangle */
} gb_correlations;

/* Zeros. False: no memory. */
bool gb_correlations_create(uint64_t columns, uint64_t block, gb_correlations *correlations);

/* Safe on a zeroed one and twice. */
void gb_correlations_free(gb_correlations *correlations);

/* Bytes of the sums. */
uint64_t gb_correlations_bytes(const gb_correlations *correlations);

/* Halves the blocks, of at least two inputs: what stays has the sums that it had. */
void gb_correlations_halve(gb_correlations *correlations);

/* Adds rows [count, columns]. Each of `threads` threads adds its share, without a lock; sums are added up in
 * the order of the rows, whatever the threads. */
void gb_correlations_add(gb_correlations *correlations, const float *rows, uint64_t count, unsigned thread,
                         unsigned threads);

/* The sum of the squares of a row of weights' products with all rows that were added, as far as blocks tell.
 * Thread-safe. */
double gb_correlations_power(const gb_correlations *correlations, const float *weights);

/* The feedback for weights whose rows are rotated in blocks of rotation inputs, which divides the columns and
 * the block; 0: not rotated. False: no memory. */
bool gb_correlations_feedback(const gb_correlations *correlations, uint32_t rotation, unsigned threads,
                              gb_feedback *feedback);

#endif
