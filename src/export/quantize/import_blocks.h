/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF's block formats, rearranged into ours without changing a weight: what gb_format_dequantize gives has
 * the bits that GGUF's own definition has (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the
 * `gguf` Python package).
 *
 *     Q4_0, Q5_0, Q8_0    one-level, groups of 32, f16 scales, no bias
 *     Q4_1, Q5_1          the same with biases
 *     Q4_K, Q5_K          two-level, groups of 32, 6-bit scales and biases
 *     Q6_K                two-level, groups of 16, 8-bit scales, no bias; docs/gguf.md has the others
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_IMPORT_BLOCKS_H
#define GUMBEL_EXPORT_QUANTIZE_IMPORT_BLOCKS_H

#include "tensor/format.h"

/* GGUF's numbers. */
typedef enum gb_block_type {
    GB_BLOCK_Q4_0 = 2,
    GB_BLOCK_Q4_1 = 3,
    GB_BLOCK_Q5_0 = 6,
    GB_BLOCK_Q5_1 = 7,
    GB_BLOCK_Q8_0 = 8,
    GB_BLOCK_Q2_K = 10,
    GB_BLOCK_Q3_K = 11,
    GB_BLOCK_Q4_K = 12,
    GB_BLOCK_Q5_K = 13,
    GB_BLOCK_Q6_K = 14,
    GB_BLOCK_IQ2_XXS = 16,
    GB_BLOCK_IQ2_XS = 17,
    GB_BLOCK_IQ3_XXS = 18,
    GB_BLOCK_IQ1_S = 19,
    GB_BLOCK_IQ4_NL = 20,
    GB_BLOCK_IQ3_S = 21,
    GB_BLOCK_IQ2_S = 22,
    GB_BLOCK_IQ4_XS = 23,
    GB_BLOCK_IQ1_M = 29,
    GB_BLOCK_TQ1_0 = 34,
    GB_BLOCK_TQ2_0 = 35,
    GB_BLOCK_MXFP4 = 39,
    GB_BLOCK_NVFP4 = 40
} gb_block_type;

typedef struct gb_block_info {
    const char *name; /* "Q4_K" */
    uint32_t weights; /* of a block: 32, 64 or 256 */
    uint32_t bytes;   /* */
    gb_format format; /* that holds it */
} gb_block_info;

/* What there is to know about a type number, or NULL for one that is not held. */
const gb_block_info *gb_block_find(uint32_t type);

/* Where the parts of one row go, as in format.h's planes; parts that the format lacks may be NULL. All are
 * overwritten. */
typedef struct gb_imported_row {
    uint8_t *codes, *scales, *biases, *super_scales, *super_biases;
} gb_imported_row;

/* Rearranges a row of `columns` weights, a multiple of the block's. blocks need not be aligned. */
void gb_import_block_row(gb_block_type type, const uint8_t *blocks, uint64_t columns,
                         const gb_imported_row *row);

#endif
