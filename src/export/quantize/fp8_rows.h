/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of 8-bit floats (E4M3: a sign, 4 bits of exponent, 3 of fraction, no infinities) with a scale for
 * each block of rows and columns. They are read as bfloat16: code times scale in float32, rounded.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_FP8_ROWS_H
#define GUMBEL_EXPORT_QUANTIZE_FP8_ROWS_H

#include "export/stacking.h"
#include "tensor/dtype.h"

/* One tensor's codes and scales, in a file's mapping. */
typedef struct gb_fp8 {
    const uint8_t *codes, *scales; /* neither is aligned */
    gb_dtype scale_dtype;
    uint64_t block_rows, block_columns; /* of one scale */
    uint64_t scale_columns;             /* scales of a row of blocks */
} gb_fp8;

/* Those of all parts of a stack, or one that all parts are of. NULL: the matrix has no such codes. */
typedef struct gb_fp8_tensors {
    const gb_fp8 *list;
    size_t count;
} gb_fp8_tensors;

/* The number of a code; a NaN for 0x7f and 0xff. */
float gb_float_from_e4m3(uint8_t code);

/* `count` numbers of a row from column `first` on. codes are those of all parts. Thread-safe. */
void gb_fp8_read(const gb_fp8_tensors *tensors, const gb_stacked_bytes *codes, uint64_t columns, uint64_t row,
                 uint64_t first, uint64_t count, float *to);

#endif
