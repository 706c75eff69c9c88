/* SPDX-License-Identifier: Apache-2.0
 *
 * Interleaved matrices with 8-bit activations, piece by piece: 16 rows (a block, the lanes) and some inputs
 * of the weight, with the activations of up to GB_TOKENS tokens (a tile). Only this folder includes it.
 */
#ifndef GUMBEL_RUN_CPU_KERNELS_VECTOR_INTERLEAVED_H
#define GUMBEL_RUN_CPU_KERNELS_VECTOR_INTERLEAVED_H

#include "run/cpu/kernels/vector/dots.h"
#include "run/cpu/kernels/vector/vector_sources.h"

/* Inputs are taken in units of 16; of each token the 16 codes stand together. */
enum { GB_UNIT = 16, GB_UNIT_STEPS = 4 };

/* The most that a piece has: its codes stay in the first cache while the tiles pass. */
enum { GB_PIECE_INPUTS = 2048, GB_PIECE_GROUPS = 32 };

/* Inputs of a whole piece: whole groups, and super-groups. */
static inline size_t gb_piece_inputs(size_t group) {
    size_t groups = GB_PIECE_INPUTS / group;
    return group * (groups < GB_PIECE_GROUPS ? groups : GB_PIECE_GROUPS);
}

/* Some inputs of a block. */
typedef struct gb_piece {
    const uint8_t *low, *high; /* codes at the first input, of 4 or 8 bits; and the bits over 4, if any */
    size_t inputs, group;      /* the last group may be shorter, by whole steps of 4 inputs */
    bool has_bias;
    size_t scale_step;            /* 16, or 0: all groups have the first one's */
    const float *scales, *biases; /* [groups, 16] */
} gb_piece;

/* The tokens' activations at the piece's first input, and where their results are. */
typedef struct gb_tile_of_tokens {
    size_t tokens;       /* 1 .. GB_TOKENS */
    const int8_t *codes; /* [units, tokens, 16] */
    const float *scales, *sums;
    const int32_t *starts; /* [groups, tokens] what the integer sum begins with */
    bool is_first;         /* the results begin at 0; otherwise they are added to */
    float *y[GB_TOKENS];   /* 16 rows of each */
} gb_tile_of_tokens;

/* Adds the piece's products to the results. bits are the weight's, of a code. */
void GB_FOR_ISA(gb_add_piece)(int bits, const gb_piece *piece, const gb_tile_of_tokens *tile);

/* Scales and biases of 16 rows for some groups as float32; row is a multiple of 16, first_group of 4. Where a
 * row has one scale there is one group. */
void GB_FOR_ISA(gb_expand_scales)(const gb_quantized_matrix *matrix, size_t row, size_t first_group,
                                  size_t groups, float *scales, float *biases);

/* How far ahead of its use memory is asked for; it may lie past the end. The hardware alone stops at the end
 * of each page. */
enum { GB_FETCH_CODES = 4096 };

#endif
