/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams a quantized constant into a program: made from a checkpoint's tensor or drawn at random, in pieces,
 * on all cores. What is held in memory is a piece of the codes and the tensor's other planes.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_WRITE_QUANTIZED_H
#define GUMBEL_EXPORT_QUANTIZE_WRITE_QUANTIZED_H

#include "export/quantize/feedback.h"
#include "export/quantize/fp8_rows.h"
#include "export/stacking.h"
#include "program/file/writer.h"

/* Where the numbers come from. */
typedef struct gb_quantized_source {
    gb_stacked_bytes data; /* rows of a float dtype, not aligned; no part: drawn */
    gb_dtype dtype;
    gb_fp8_tensors fp8; /* with a list: data are codes, and dtype is bfloat16 */
    bool is_mapped;     /* data is a file's mapping, whose pages can go once they are read */
    gb_quantize_method method;
    const gb_feedback *feedback; /* of rows that are rotated so; NULL: each weight is rounded by itself */
    uint32_t rotation; /* block of the orthonormal Hadamard transform that rows are rotated by first; or 0 */
    uint64_t stream;   /* drawn: of random_weights.h */
    float half_width;  /* drawn: weights lie about in -half_width .. half_width */
} gb_quantized_source;

/* Bytes of a row of the data. */
uint64_t gb_source_row_bytes(const gb_quantized_source *source, uint64_t columns);

/* A row of a source with data, as float32 and not rotated. Thread-safe. */
void gb_read_source_row(const gb_quantized_source *source, uint64_t columns, uint64_t row, float *to);

/* Told of bytes that were written; an error ends the writing. */
typedef struct gb_written_callback {
    gumbel_status (*advance)(void *user, uint64_t bytes, gumbel_error *error);
    void *user;
} gb_written_callback;

/* Writes all bytes of the constant, which has been begun and has a one-level or progressive format. The bytes
 * do not depend on the number of threads. Errors: the writer's and the callback's, MEMORY; FORMAT naming the
 * tensor and row where a number is not finite or too large. */
gumbel_status gb_write_quantized(gb_writer *writer, const gb_constant *constant,
                                 const gb_quantized_source *source, unsigned threads,
                                 const gb_written_callback *written, gumbel_error *error);

#endif
