/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a program file in a streaming way: first the bytes of the constants, one after another as they are
 * made, then everything else. The file has a temporary name in the same directory until gb_writer_finish
 * renames it, so that a failure or an interrupt never leaves a half-written program.
 */
#ifndef GUMBEL_PROGRAM_FILE_WRITER_H
#define GUMBEL_PROGRAM_FILE_WRITER_H

#include "base/output_file.h"
#include "program/program.h"

typedef struct gb_writer gb_writer;

/* Calls work for ranges first .. end - 1 that make up 0 .. count - 1, on that many threads, and returns when
 * all are done. */
typedef void (*gb_parallel_loop)(unsigned threads, size_t count,
                                 void (*work)(void *user, unsigned thread, size_t first, size_t end),
                                 void *user);

/* Creates the temporary file beside path, which may be none of the inputs (NULL: any); both must outlive the
 * writer. program is what gb_builder_finish gave, with a draft head or without; it must outlive the writer,
 * too, which fills in its constants' offsets and checksums and its id, and the head's. Errors: those of
 * gb_output_create; LIMIT (the disk has no room for the program); MEMORY. */
gumbel_status gb_writer_create(const char *path, const gb_input_list *inputs, gb_program *program,
                               gb_writer **writer, gumbel_error *error);

/* Uses these threads for packing; the bytes do not depend on them. */
void gb_writer_use_threads(gb_writer *writer, gb_parallel_loop loop, unsigned threads);

/* From now on adds what writing takes to totals, which must outlive the writer. */
void gb_writer_measure(gb_writer *writer, gb_output_totals *totals);

/* Begins the bytes of the constant with that index, as gb_file_constant numbers them (each but shared ones
 * exactly once, in any order); then gb_writer_write until gb_constant.size bytes have been written. They are
 * canonical: those of a constant with a packing the writer packs. */
gumbel_status gb_writer_begin_constant(gb_writer *writer, uint32_t index, gumbel_error *error);
gumbel_status gb_writer_write(gb_writer *writer, const void *data, uint64_t size, gumbel_error *error);

/* Writes graph, metadata, tokenizer and chat templates (from program's blobs), syncs and renames. Refuses
 * (ARGUMENT) while a constant is missing or incomplete. Destroys the writer in any case. */
gumbel_status gb_writer_finish(gb_writer *writer, gumbel_error *error);

/* Removes the temporary file. NULL is allowed. */
void gb_writer_abort(gb_writer *writer);

#endif
