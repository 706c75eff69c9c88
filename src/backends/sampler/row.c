/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/sampler/row.h"

#include "backends/sampler/rule.h"

uint32_t gb_row_block_count(uint32_t count) {
    const uint32_t half_blocks = (gb_word_half(count) + GB_BLOCK - 1) / GB_BLOCK;
    return 2 * half_blocks + count % 2;
}

bool gb_row_scan(const float *logits, uint32_t count, float *block_max, gb_row *row) {
    *row = (gb_row){.logits = logits,
                    .count = count,
                    .half = gb_word_half(count),
                    .upper = gb_word_upper(count),
                    .half_blocks = gb_row_block_count(count) / 2,
                    .block_count = gb_row_block_count(count),
                    .block_max = block_max,
                    .max = gb_negative_infinity()};
    bool has_nan = false;
    for (uint32_t block = 0; block < row->block_count; block++) {
        uint32_t size;
        const float *x = gb_row_block(row, block, &size);
        block_max[block] = gb_block_max(x, size, &has_nan);
        row->max = block_max[block] > row->max ? block_max[block] : row->max;
    }
    return !has_nan;
}

const float *gb_row_block(const gb_row *row, uint32_t block, uint32_t *size) {
    if (block == 2 * row->half_blocks) {
        *size = 1;
        return row->logits + row->half;
    }
    const bool is_upper = block >= row->half_blocks;
    const uint32_t begin = (is_upper ? block - row->half_blocks : block) * GB_BLOCK;
    *size = gb_block_size(row->half, begin);
    return row->logits + (is_upper ? row->upper : 0) + begin;
}

/* Whether block holds the largest logit; if so, *index is its first one there. */
static bool find_in_block(const gb_row *row, uint32_t block, uint32_t *index) {
    if (row->block_max[block] != row->max)
        return false;
    uint32_t size;
    const float *x = gb_row_block(row, block, &size);
    *index = (uint32_t)(x - row->logits) + gb_first_equal(x, row->max);
    return true;
}

uint32_t gb_row_argmax(const gb_row *row) {
    uint32_t index = 0;
    for (uint32_t block = 0; block < row->half_blocks; block++) {
        if (find_in_block(row, block, &index))
            return index;
    }
    if (row->half < row->upper && find_in_block(row, 2 * row->half_blocks, &index))
        return index;
    for (uint32_t block = row->half_blocks; block < 2 * row->half_blocks; block++) {
        if (find_in_block(row, block, &index))
            return index;
    }
    return index;
}
