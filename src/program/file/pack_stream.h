/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs a constant while its canonical bytes pass by, in pieces of any size, so that whoever makes weights
 * need not know how they will be arranged. What is held in memory is a few megabytes, or a block of rows.
 */
#ifndef GUMBEL_PROGRAM_FILE_PACK_STREAM_H
#define GUMBEL_PROGRAM_FILE_PACK_STREAM_H

#include "program/file/writer.h"

/* Zeroed at the start. */
typedef struct gb_pack_stream {
    gb_parallel_loop loop; /* NULL: the caller's thread does all */
    unsigned threads;
    const gb_constant *constant;
    gb_planes planes;
    uint64_t rows, columns;
    uint64_t position; /* bytes of the constant so far */
    uint64_t held_bytes, capacity;
    uint8_t *held;   /* what there is of a block that is not whole yet */
    uint8_t *packed; /* a piece; both have capacity bytes */
} gb_pack_stream;

/* Begins a quantized constant with a packing that fits. */
void gb_pack_stream_begin(gb_pack_stream *stream, const gb_constant *constant);

/* Takes some of the bytes at *data and gives what can be written now (perhaps nothing), which stays until the
 * next call. Call it until *size is 0. Errors: MEMORY. */
gumbel_status gb_pack_stream_next(gb_pack_stream *stream, const uint8_t **data, uint64_t *size,
                                  const uint8_t **written, uint64_t *written_size, gumbel_error *error);

void gb_pack_stream_end(gb_pack_stream *stream);

#endif
