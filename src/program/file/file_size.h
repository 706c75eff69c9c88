/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a program's file will be, before any of it is written.
 */
#ifndef GUMBEL_PROGRAM_FILE_FILE_SIZE_H
#define GUMBEL_PROGRAM_FILE_FILE_SIZE_H

#include "program/file/format.h"
#include "program/program.h"

typedef struct gb_file_size {
    uint64_t bytes;   /* of the whole file */
    uint64_t padding; /* of them between sections, GB_MOST_SECTION_PADDING at most */
} gb_file_size;

enum { GB_MOST_SECTION_PADDING = (GB_SECTION_LIMIT - 1) * GB_SECTION_ALIGNMENT };

/* That of a program as gb_writer_create takes it. Offsets and checksums have fixed sizes, so the graph is as
 * long now as when they are known. False: no memory. */
bool gb_program_file_size(const gb_program *program, gb_file_size *size);

#endif
