/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a file that is read by its path. It takes regular files only, never waits for the other end of a
 * FIFO, and can list what was opened, so that no output replaces an input.
 */
#ifndef GUMBEL_BASE_INPUT_FILE_H
#define GUMBEL_BASE_INPUT_FILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Opens the regular file at path for reading and describes it. Close *descriptor with close(). Errors: IO
 * naming the path, and what is there instead of a regular file; MEMORY (see gb_record_inputs). Thread-safe.
 */
gumbel_status gb_open_input(const char *path, int *descriptor, struct stat *information, gumbel_error *error);

/* "a FIFO", "a directory": what a file of that st_mode is. */
const char *gb_file_kind(mode_t mode);

/* What a file is under all its names. Zero: no file. */
typedef struct gb_file_id {
    uint64_t device, inode;
} gb_file_id;

gb_file_id gb_file_id_of(const struct stat *information);

/* Files that are read. Start from {0}. */
typedef struct gb_input_list {
    gb_file_id *files;
    size_t count, capacity;
    struct gb_input_list *outer; /* one that this thread fills as well */
} gb_input_list;

/* From here on gb_open_input adds each file that this thread opens to list, which must stay where it is,
 * until gb_end_inputs stops that and empties it. Such pairs may be nested. */
void gb_record_inputs(gb_input_list *list);
void gb_end_inputs(gb_input_list *list);

/* Adds a file to this thread's lists that an output depends on although it is not opened. Errors: MEMORY. */
gumbel_status gb_note_input(const char *path, const struct stat *information, gumbel_error *error);

/* Whether the file is in the list, which may be NULL. */
bool gb_is_input(const gb_input_list *list, const struct stat *information);

#endif
