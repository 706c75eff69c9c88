/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams a program's constants into its file, in pieces of a few MB, whatever their size.
 */
#ifndef GUMBEL_EXPORT_WRITE_WEIGHTS_H
#define GUMBEL_EXPORT_WRITE_WEIGHTS_H

#include "export/weights.h"
#include "program/file/writer.h"

/* Writes every constant of program, and those that its draft head does not share, and tells progress (may be
 * NULL) of the bytes written after each piece. Errors: the writer's, MEMORY, CANCELLED when progress returned
 * false. The writer stays open. */
gumbel_status gb_write_weights(gb_writer *writer, const gb_program *program, const gb_weights *weights,
                               gumbel_progress_callback progress, void *user, gumbel_error *error);

#endif
