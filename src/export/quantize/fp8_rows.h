/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of 8-bit floats (E4M3: a sign, 4 bits of exponent, 3 of fraction, no infinities) with a scale for
 * each block of rows and columns, or of 4-bit floats (E2M1), whose scales are E4M3 and have one of their own.
 * They are read as bfloat16: code times scale in float32, rounded.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_FP8_ROWS_H
#define GUMBEL_EXPORT_QUANTIZE_FP8_ROWS_H

#include "export/stacking.h"
#include "tensor/dtype.h"

enum { GB_NVFP4_BLOCK = 64, GB_NVFP4_BLOCK_BYTES = 36 }; /* in GGUF */

/* One tensor's codes and scales, in a file's mapping. */
typedef struct gb_fp8 {
    const uint8_t *codes, *scales; /* neither is aligned */
    gb_dtype scale_dtype;
    uint64_t block_rows, block_columns; /* of one scale */
    uint64_t scale_columns;             /* scales of a row of blocks */
    bool has_exponents;                 /* byte e of scales is 2^(e - 127), and 255 no number */
    bool has_4_bits;                    /* two codes a byte, the first in the low bits; scales are E4M3 */
    float global;                       /* of 4 bits: what scales are multiplied with, or divided by */
    bool is_divisor;
    bool has_blocks; /* codes are GGUF's blocks of NVFP4, which have scales, and scales one float32 for all */
} gb_fp8;

/* Those of all parts of a stack, or one that all parts are of. NULL: the matrix has no such codes. */
typedef struct gb_fp8_tensors {
    const gb_fp8 *list;
    size_t count;
} gb_fp8_tensors;

/* The number of a code; a NaN for 0x7f and 0xff. */
float gb_float_from_e4m3(uint8_t code);

/* Of E2M1: 0 .. 15. */
float gb_float_from_e2m1(uint32_t code);

/* The bytes of a row's codes. */
static inline uint64_t gb_fp8_row_bytes(const gb_fp8 *fp8, uint64_t columns) {
    if (fp8->has_blocks)
        return columns / GB_NVFP4_BLOCK * GB_NVFP4_BLOCK_BYTES;
    return fp8->has_4_bits ? columns / 2 : columns;
}

/* `count` numbers of a row from column `first` on. codes are those of all parts. Thread-safe. */
void gb_fp8_read(const gb_fp8_tensors *tensors, const gb_stacked_bytes *codes, uint64_t columns, uint64_t row,
                 uint64_t first, uint64_t count, float *to);

#endif
