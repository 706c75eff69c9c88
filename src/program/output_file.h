/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears under its name only when it is whole: written beside it under a temporary name, then
 * synced and renamed.
 */
#ifndef GUMBEL_PROGRAM_OUTPUT_FILE_H
#define GUMBEL_PROGRAM_OUTPUT_FILE_H

#include "base/status.h"

#include <stdint.h>

/* What writing took, for reports. */
typedef struct gb_output_totals {
    uint64_t bytes; /* of the file */
    double seconds; /* until the system had taken and synced them */
} gb_output_totals;

typedef struct gb_output_file {
    char *path, *temporary_path;
    int descriptor; /* -1: none */
    uint8_t *buffer;
    size_t buffered;
    uint64_t position;        /* bytes given so far */
    gb_output_totals *totals; /* added to while the file is written; NULL: not wanted */
} gb_output_file;

/* Creates the temporary file in the directory of path. An existing file at path is replaced in the end;
 * anything there that is no regular file is refused. Errors: ARGUMENT, IO naming the path, MEMORY. */
gumbel_status gb_output_create(gb_output_file *file, const char *path, gumbel_error *error);

/* Appends size bytes. Errors: IO naming the path. */
gumbel_status gb_output_write(gb_output_file *file, const void *data, uint64_t size, gumbel_error *error);

/* Appends zeros until the position is a multiple of alignment, a power of two. */
gumbel_status gb_output_align(gb_output_file *file, uint64_t alignment, gumbel_error *error);

/* Overwrites size bytes at the start of the file, syncs and renames it. The file must still be closed. */
gumbel_status gb_output_commit(gb_output_file *file, const void *head, size_t size, gumbel_error *error);

/* Closes the file and removes it unless it was committed. Safe on a zeroed structure whose descriptor is -1.
 */
void gb_output_close(gb_output_file *file);

#endif
