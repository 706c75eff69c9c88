/* SPDX-License-Identifier: Apache-2.0
 *
 * Read-only memory maps of whole files: how checkpoints and programs are read.
 */
#ifndef GUMBEL_BASE_FILE_MAP_H
#define GUMBEL_BASE_FILE_MAP_H

#include "base/input_file.h"

typedef struct gb_file_map {
    const uint8_t *data; /* page-aligned; NULL for an empty file */
    size_t size;         /* bytes */
    gb_file_id id;
} gb_file_map;

/* Maps the regular file at path, as gb_open_input finds it. Where it becomes shorter meanwhile, reading what
 * is gone raises SIGBUS. Errors: those of gb_open_input. Close with gb_unmap_file. */
gumbel_status gb_map_file(const char *path, gb_file_map *map, gumbel_error *error);

/* Safe on a zeroed map and twice. */
void gb_unmap_file(gb_file_map *map);

/* Tells the system that the mapped bytes are not needed for now, so that they need not stay in memory; they
 * can be read again. */
void gb_release_pages(const void *data, uint64_t size);

/* Reads a small text file whole: *text gets size bytes and a terminating zero; free with gb_free.
 * A file of more than limit bytes is GUMBEL_ERROR_FORMAT. size may be NULL. */
gumbel_status gb_read_file(const char *path, size_t limit, char **text, size_t *size, gumbel_error *error);

#endif
