/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of logits with the largest of each block, so that whole blocks can be passed over. The words of
 * random bits come in pairs (i, upper + i), so the blocks are laid over both halves of the row alike: block b
 * and block half_blocks + b share their hashes. An odd row's middle logit is a block of its own, the last.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_ROW_H
#define GUMBEL_BACKENDS_SAMPLER_ROW_H

#include "backends/sampler/scan.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gb_row {
    const float *logits; /* [count] */
    uint32_t count;
    uint32_t half, upper; /* count / 2 rounded down and up */
    uint32_t half_blocks; /* blocks in each half */
    uint32_t block_count;
    float *block_max; /* [block_count] */
    float max;        /* of the row; -inf where there is no candidate */
} gb_row;

/* How many blocks, and floats in block_max, a row of count logits has. */
uint32_t gb_row_block_count(uint32_t count);

/* Fills row, which keeps both pointers. Returns false where a logit is a NaN. */
bool gb_row_scan(const float *logits, uint32_t count, float *block_max, gb_row *row);

/* The logits of a block, *size in number. */
const float *gb_row_block(const gb_row *row, uint32_t block, uint32_t *size);

/* The lowest index of the largest logit. */
uint32_t gb_row_argmax(const gb_row *row);

#endif
