/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of logits in blocks: the loops that every sampled token runs through. Thread-safe.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_SCAN_H
#define GUMBEL_BACKENDS_SAMPLER_SCAN_H

#include <stdbool.h>
#include <stdint.h>

/* Logits per block. */
enum { GB_BLOCK = 256 };

/* Logits of the block that begins at begin, of count in all. */
static inline uint32_t gb_block_size(uint32_t count, uint32_t begin) {
    return count - begin < GB_BLOCK ? count - begin : GB_BLOCK;
}

/* The largest of x[0..count), -inf where there is none; count <= GB_BLOCK. Where there is a NaN the result
 * means nothing and *has_nan becomes true; otherwise *has_nan stays. */
float gb_block_max(const float *x, uint32_t count, bool *has_nan);

/* Writes the indices of those of x[0..count) that are at least bound, in order, and returns their number;
 * stops soon after it has limit of them. indices holds GB_BLOCK, count <= GB_BLOCK. */
uint32_t gb_find_from(const float *x, uint32_t count, float bound, uint32_t limit, uint32_t *indices);

/* The first index of value in x, which holds it. */
uint32_t gb_first_equal(const float *x, float value);

#endif
