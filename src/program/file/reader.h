/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a program file: maps it, checks its checksums, decodes the graph and verifies it. Weights stay where
 * they are mapped. The file's layout is described in docs/program-format.md.
 */
#ifndef GUMBEL_PROGRAM_FILE_READER_H
#define GUMBEL_PROGRAM_FILE_READER_H

#include "program/program.h"

/* Errors begin with the path. Free with gb_program_destroy. */
gumbel_status gb_program_read(const char *path, gb_program **program, gumbel_error *error);

/* The same from size bytes in memory, which must stay until the program is destroyed; name stands for the
 * path in messages. data must be 64-byte aligned. */
gumbel_status gb_program_parse(const char *name, const uint8_t *data, uint64_t size, gb_program **program,
                               gumbel_error *error);

/* Reads all weights, the draft head's too, and compares their checksums, which opening a program does not.
 * Errors: FORMAT naming the constant. */
gumbel_status gb_check_weights(const gb_program *program, gumbel_error *error);

#endif
