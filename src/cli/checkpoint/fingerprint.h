/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program is made from, in few bytes: of each file its name, size and modification time, and hashes of
 * blocks spread evenly over it. Checkpoints of one shape that were trained differently differ in those, even
 * where somebody gave their files the same times.
 */
#ifndef GUMBEL_CLI_CHECKPOINT_FINGERPRINT_H
#define GUMBEL_CLI_CHECKPOINT_FINGERPRINT_H

#include "base/byte_buffer.h"

/* Adds the files that an export of the checkpoint, an absolute path, may read: of a folder its *.safetensors,
 * *.json and *.jinja, of a GGUF all its parts. Where they lie does not matter. Errors: IO, MEMORY. */
gumbel_status cli_fingerprint(const char *checkpoint, gb_byte_buffer *print, gumbel_error *error);

/* Adds one file under that name. Errors: IO, MEMORY. */
gumbel_status cli_fingerprint_file(const char *path, const char *name, gb_byte_buffer *print,
                                   gumbel_error *error);

#endif
