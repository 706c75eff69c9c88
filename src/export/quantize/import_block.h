/* SPDX-License-Identifier: Apache-2.0
 *
 * One block of GGUF on its way into a row of ours: what the sources that know the types have in common.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_IMPORT_BLOCK_H
#define GUMBEL_EXPORT_QUANTIZE_IMPORT_BLOCK_H

#include "export/quantize/import_blocks.h"

#include <string.h>

/* Where it comes from, and which of the row's blocks it is. */
typedef struct gb_block {
    const uint8_t *from;
    const gb_imported_row *row;
    uint64_t index;
    uint32_t bits;
} gb_block;

/* Weight i of the block, which has so many. */
static inline void gb_put_weight(const gb_block *b, uint32_t weights, uint32_t i, uint32_t code) {
    gb_put_code(b->row->codes, b->bits, b->index * weights + i, code);
}

/* Nibbles of 32 weights: the first 16 are low, the others high. */
static inline uint32_t gb_nibble32(const uint8_t *nibbles, uint32_t i) {
    return i < 16 ? nibbles[i] & 15u : (uint32_t)nibbles[i - 16] >> 4;
}

/* Nibble i of bytes that have the even one in their low bits. */
static inline uint32_t gb_nibble_at(const uint8_t *bytes, uint32_t i) {
    return (uint32_t)bytes[i / 2] >> (i % 2 * 4) & 15u;
}

static inline uint32_t gb_read_u16(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

static inline void gb_put_super_scale(const gb_block *b, const uint8_t *half) {
    memcpy(b->row->super_scales + 2 * b->index, half, 2);
}

/* import_low_bits.c */
void gb_import_q2_k(const gb_block *b);
void gb_import_q3_k(const gb_block *b);
void gb_import_tq1_0(const gb_block *b);
void gb_import_tq2_0(const gb_block *b);

/* import_books.c */
void gb_import_iq4_nl(const gb_block *b);
void gb_import_iq4_xs(const gb_block *b);
void gb_import_mxfp4(const gb_block *b);
void gb_import_nvfp4(const gb_block *b);
float gb_nvfp4_block_scale(uint8_t byte); /* E4M3 without a sign; its NaN is 0, as GGUF reads it */

/* import_grids.c */
void gb_import_iq1_s(const gb_block *b);
void gb_import_iq1_m(const gb_block *b);
void gb_import_iq2_xxs(const gb_block *b);
void gb_import_iq2_xs(const gb_block *b);
void gb_import_iq2_s(const gb_block *b);
void gb_import_iq3_xxs(const gb_block *b);
void gb_import_iq3_s(const gb_block *b);

#endif
