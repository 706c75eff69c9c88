/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's metadata and graph as the bytes of their sections, and back.
 */
#ifndef GUMBEL_PROGRAM_FILE_ENCODE_H
#define GUMBEL_PROGRAM_FILE_ENCODE_H

#include "program/file/records.h"
#include "program/program.h"

/* Add a section's bytes to buffer; buffer->failed tells whether memory ran short. */
void gb_encode_metadata(const gb_metadata *metadata, gb_byte_buffer *buffer);
void gb_encode_graph(const gb_program *program, gb_byte_buffer *buffer);

/* Fill program's metadata, or its arrays, in program's storage, from untrusted bytes. What the fields say is
 * left to the verifier. Errors: FORMAT (broken records, missing fields), UNSUPPORTED (a critical record or
 * field that this version does not know, by its number), MEMORY. */
gumbel_status gb_decode_metadata(gb_byte_view section, gb_program *program, gumbel_error *error);
gumbel_status gb_decode_graph(gb_byte_view section, gb_program *program, gumbel_error *error);

#endif
