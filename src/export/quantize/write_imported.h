/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams a constant whose weights a checkpoint has quantized already: rows rearranged, no weight changed.
 * What is held in memory is a piece of the codes and the tensor's scales and biases.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_WRITE_IMPORTED_H
#define GUMBEL_EXPORT_QUANTIZE_WRITE_IMPORTED_H

#include "export/quantize/import_blocks.h"
#include "export/quantize/write_quantized.h"
#include "export/stacking.h"

enum { GB_IMPORTED_AT_ONCE = 128 };

/* Where the rows of a quantized matrix come from. read gives up to GB_IMPORTED_AT_ONCE rows, rearranged, and
 * is called by many threads; release gets the rows that have been read, whose pages can go. */
typedef struct gb_imported_rows {
    void (*read)(const void *user, uint64_t first, uint64_t count, const gb_imported_row *to);
    void (*release)(const void *user, uint64_t first, uint64_t count);
    const void *user;
} gb_imported_rows;

/* Writes all bytes of the constant, which has been begun and has the rows' format. The bytes do not depend on
 * the number of threads. Errors: the writer's and the callback's, MEMORY; FORMAT
 * naming a scale or bias that is not finite. */
gumbel_status gb_write_imported_rows(gb_writer *writer, const gb_constant *constant,
                                     const gb_imported_rows *rows, unsigned threads,
                                     const gb_written_callback *written, gumbel_error *error);

/* The same from a GGUF file's blocks. Writes all bytes of the constant, which has been begun and has the
 * format of the type. blocks are those of its rows, in a file's mapping, whose pages can go once they are
 * read; they may be stacked. The bytes do not depend on the number of threads. Errors: the writer's and the
 * callback's, MEMORY. */
gumbel_status gb_write_imported(gb_writer *writer, const gb_constant *constant, gb_block_type type,
                                const gb_stacked_bytes *blocks, unsigned threads,
                                const gb_written_callback *written, gumbel_error *error);

#endif
