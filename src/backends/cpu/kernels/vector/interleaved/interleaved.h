/* SPDX-License-Identifier: Apache-2.0
 *
 * Interleaved matrices with 8-bit activations, piece by piece: 16 rows (a block, the lanes) and some inputs
 * of the weight, with the activations of up to GB_TOKENS tokens (a tile). Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_INTERLEAVED_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_INTERLEAVED_H

#include "backends/cpu/kernels/vector/interleaved/book.h"
#include "backends/cpu/kernels/vector/vector_sources.h"

/* Of a block. */
enum { GB_ROWS = 16 };

/* Inputs are taken in units of 16; of each token the 16 codes stand together. */
enum { GB_UNIT = 16, GB_UNIT_STEPS = 4 };

/* One token takes one block at a time, in the order of memory; several take GB_BLOCKS, so that there are
 * enough sums that do not wait for each other. */
static inline size_t gb_blocks_for(size_t tokens) {
    return tokens == 1 ? 1 : GB_BLOCKS;
}

/* What a piece has of one block: its codes at the first input, of 2, 4 or 8 bits, and the bits above, if any;
 * scales and biases [groups, 16]; and the results [tokens, 16] that are added to. */
typedef struct gb_block_piece {
    const uint8_t *low, *high;
    size_t low_ahead, high_ahead; /* from codes that are used to those that are prefetched meanwhile */
    const void *scales, *biases;
    float (*y)[16];
} gb_block_piece;

/* Some inputs of gb_blocks_for(tokens) blocks and of the tokens of a tile. */
typedef struct gb_piece {
    gb_block_piece blocks[GB_BLOCKS];
    size_t inputs, group; /* the last group may be shorter, by whole steps of 4 inputs */
    size_t scale_step;    /* 16, or 0: all groups have the first one's */
    gb_dtype scale_dtype;
    bool has_bias;
    const gb_raised_book *book;
    size_t tokens;       /* 1 .. GB_TOKENS */
    const int8_t *codes; /* of the activations [units, tokens, 16] */
    const float *scales, *sums;
    const int32_t *starts; /* [groups, tokens] what the integer sum begins with */
} gb_piece;

/* Adds the piece's products to the results. kind is the weight's (gb_kind_of). */
void GB_FOR_ISA(gb_add_piece)(int kind, const gb_piece *piece);

/* Scales and biases of two levels as float32, for 16 rows and some groups; row is a multiple of 16, and the
 * groups are those of whole super-groups. */
void GB_FOR_ISA(gb_expand_scales)(const gb_quantized_matrix *matrix, size_t row, size_t first_group,
                                  size_t groups, float *scales, float *biases);

/* Asks for memory that is `ahead` bytes further on; it may lie past the end. Into all caches, even what is
 * used once: past them (prefetchnta) Zen reads 2 to 4 % faster, but Intel at half the speed. */
GB_INLINE void gb_fetch(const void *from, size_t ahead) {
    __builtin_prefetch((const void *)((uintptr_t)from + ahead));
}

/* So far ahead that a page has been found by the time its first bytes are prefetched: where a machine is a
 * virtual one looking up an address takes as long as reading some kilobytes. */
enum { GB_PAGE_LEAD_BYTES = 128 * 1024 };

/* Has the page of an address, which may be anything, looked up. */
GB_INLINE void gb_find_page(const void *from, size_t ahead) {
    __builtin_prefetch((const void *)((uintptr_t)from + ahead), 0, 2);
}

enum { GB_FETCH_SCALES = 1024 };

#endif
