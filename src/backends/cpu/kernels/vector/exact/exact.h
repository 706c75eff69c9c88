/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_exact on interleaved matrices: 16 rows (a block, the lanes) of integer weights with inputs that are
 * rounded per token. Sums are exact, so kernels order and split them as is fastest; they begin with what an
 * offset of the weights adds, so that no partial sum leaves int32 either. Only this folder includes it.
 *
 * A block meets few tokens as a stream: its codes are read where they lie and prefetched, all of k in one
 * go. For many tokens, where a set multiplies bytes into 32 bits at once (GB_HAS_WIDE_DOTS), weights are
 * first expanded to bytes w + 128, the form that codes of 8 bits have anyway.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_EXACT_EXACT_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_EXACT_EXACT_H

#include "backends/cpu/kernels/vector/interleaved/ahead.h"
#include "backends/cpu/kernels/vector/interleaved/interleaved.h"

enum { GB_BYTE_CENTER = 128 };

/* Inputs of a group of progressive formats are whole spans; activations have a sum of codes for each. */
enum { GB_SPAN = 32, GB_SPAN_STEPS = GB_SPAN / 4 };

/* Whether codes of so many bits are multiplied as bytes. Otherwise each span's sum of codes is scaled. */
GB_INLINE bool gb_is_expanded(int bits) {
    return bits == 8 || GB_HAS_WIDE_DOTS;
}

/* Whether streams multiply codes as bytes: those of fewer bits are scaled to these where that is less work
 * than scaling a sum for each token. */
enum { GB_MOST_SUMMED_TOKENS = 4 };
GB_INLINE bool gb_streams_bytes(int bits, size_t tokens) {
    return bits == 8 || (GB_HAS_WIDE_DOTS && tokens > GB_MOST_SUMMED_TOKENS);
}

/* linear_exact for an interleaved matrix: any number of tokens, and more than one where gb_is_expanded. */
void GB_FOR_ISA(gb_linear_exact_few)(const gb_linear *linear, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_linear_exact_many)(const gb_linear *linear, size_t first, size_t end, void *scratch);

/* The most tokens of a stream, whose sums stay in registers. */
#if defined(__AVX512VNNI__)
enum { GB_STREAM_TOKENS = 16 };
#else
enum { GB_STREAM_TOKENS = GB_TOKENS };
#endif

/* The activations of up to GB_STREAM_TOKENS tokens for all of k. */
typedef struct gb_exact_tokens {
    size_t count, inputs;
    const int8_t *codes;              /* [units, count, 16] */
    const int32_t *sums;              /* [spans, count] of codes; not read where gb_streams_bytes */
    int32_t starts[GB_STREAM_TOKENS]; /* what sums begin with */
    float scales[GB_STREAM_TOKENS];   /* t */
    float *results[GB_STREAM_TOKENS]; /* y of the matrix's row first_row */
    size_t first_row;
} gb_exact_tokens;

/* Blocks of rows one after the other. */
typedef struct gb_exact_blocks {
    size_t count;
    gb_stream low, high, groups; /* codes, their bits over 4, the bytes of groups */
    size_t lead;                 /* groups from those that are used to those that are prefetched */
    size_t group;                /* inputs; of 8 bits GB_UNIT, the last one perhaps fewer */
    const void *row_scales;
    gb_dtype scale_dtype;
    size_t row;        /* of the matrix, row 0 of the first block */
    size_t first, end; /* rows of the matrix that are wanted, some of each block */
} gb_exact_blocks;

/* Products of blocks with tokens, into the results. bits are of a code. */
void GB_FOR_ISA(gb_stream_blocks)(int bits, const gb_exact_tokens *tokens, const gb_exact_blocks *blocks);

/* Weights of the 16 rows from `row` on, a multiple of 16, as bytes w + 128 [inputs / 4, 16, 4]. first is a
 * multiple of 128, inputs one of 32; for progressive formats where GB_HAS_WIDE_DOTS. */
void GB_FOR_ISA(gb_expand_block)(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t inputs,
                                 uint8_t *to);

/* Some inputs of a few blocks, as bytes, and of the tokens of a tile. */
typedef struct gb_byte_tile {
    const uint8_t *blocks;          /* [inputs / 4, 16, 4] each */
    size_t block_bytes;             /* from one block to the next */
    size_t block_count, tokens;     /* 1 .. GB_BLOCKS, 1 .. GB_TOKENS */
    size_t inputs;                  /* a multiple of 4 */
    const int8_t *codes[GB_TOKENS]; /* of the activations */
    const uint8_t *next; /* what is prefetched meanwhile, so many bytes with each step of 4 inputs */
    size_t next_step;
} gb_byte_tile;

typedef int32_t gb_tile_sums[GB_BLOCKS][GB_TOKENS][GB_ROWS];

/* Adds products of the activations and the bytes less GB_BYTE_OFFSET. */
void GB_FOR_ISA(gb_add_byte_tile)(const gb_byte_tile *tile, gb_tile_sums sums);

/* What a token's sums begin with where weights are multiplied as bytes w + 128, less GB_BYTE_OFFSET. */
static inline int32_t gb_exact_start(const gb_linear *l, size_t token) {
    const gb_activations *x = l->activations;
    const int32_t *sums = x->code_sums + gb_linear_input_row(l, token) * x->groups;
    int32_t sum = 0;
    for (size_t g = 0; g < x->groups; g++)
        sum += sums[g];
    return (GB_BYTE_OFFSET - GB_BYTE_CENTER) * sum;
}

/* Scales of the rows of the matrix from `row` on. */
static inline const void *gb_row_scales(const gb_quantized_matrix *matrix, size_t row) {
    const gb_planes *planes = &matrix->planes;
    const gb_plane *plane =
        matrix->format.kind == GB_FORMAT_PROGRESSIVE ? &planes->super_scales : &planes->scales;
    return (const uint8_t *)matrix->data + plane->offset + row * plane->row_bytes;
}

GB_INLINE gb_lanes gb_load_row_scales(const void *from, gb_dtype dtype) {
    return dtype == GB_F16 ? gb_load_lanes(from, GB_F16, 0) : gb_load_lanes(from, GB_BF16, 0);
}

/* ((float)sum * t) * row scale */
GB_INLINE gb_lanes gb_finish_sum(gb_wide sum, float t, gb_lanes row_scales) {
    return gb_multiply_lanes(gb_multiply_by(gb_floats_of(sum), t), row_scales);
}

#endif
