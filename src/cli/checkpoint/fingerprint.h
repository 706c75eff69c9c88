/* SPDX-License-Identifier: Apache-2.0
 *
 * How to tell whether a checkpoint is still the one that a program was made from: by the names, sizes and
 * modification times of its files, and where it may have moved, by a sample of what they hold.
 */
#ifndef GUMBEL_CLI_CHECKPOINT_FINGERPRINT_H
#define GUMBEL_CLI_CHECKPOINT_FINGERPRINT_H

#include "cli/base/storage.h"
#include "gumbel.h"

#include <sys/stat.h>

/* Adds name, size and modification time of each of the files that an export of the checkpoint may read: of a
 * folder its *.safetensors, *.json and *.jinja, of a GGUF all its parts. Errors: IO. */
gumbel_status cli_fingerprint_files(const char *checkpoint, gb_byte_buffer *state, gumbel_error *error);

/* Adds those of one file. */
void cli_fingerprint_file(const char *name, const struct stat *file, gb_byte_buffer *state);

/* A hash of small files and of 256 blocks, spread evenly, of each large one. Checkpoints of one shape that
 * were trained differently have other samples, even where somebody gave their files the same times.
 * Errors: IO. */
gumbel_status cli_fingerprint_sample(const char *checkpoint, uint64_t *sample, gumbel_error *error);

#endif
