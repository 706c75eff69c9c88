/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears under its name only when it is whole: written beside it without a name, or where the
 * file system has no such files under a temporary one, then synced and renamed. Everything that gumbel writes
 * to a path of the user goes through here.
 */
#ifndef GUMBEL_BASE_OUTPUT_FILE_H
#define GUMBEL_BASE_OUTPUT_FILE_H

#include "base/output_target.h"
#include "base/temporary_file.h"

/* What writing took, for reports. */
typedef struct gb_output_totals {
    uint64_t bytes; /* of the file */
    double seconds; /* until the system had taken and synced them */
} gb_output_totals;

typedef struct gb_output_file {
    gb_output_target target;
    char temporary[GB_TEMPORARY_NAME]; /* in the target's directory; "": it has no name */
    int descriptor;                    /* -1: none */
    uint8_t *buffer;                   /* the caller's */
    size_t capacity, buffered;
    uint64_t position;        /* bytes given so far */
    gb_output_totals *totals; /* added to while the file is written; NULL: not wanted */
} gb_output_file;

/* One that is not created, which may be closed. */
#define GB_NO_OUTPUT ((gb_output_file){.target.directory = -1, .descriptor = -1})

/* Creates the temporary file where path leads, through links, and removes those in that directory whose
 * writers have ended. What is there is replaced in the end, and its permissions are kept; what is no regular
 * file and what is one of the inputs (NULL: none) is refused. Small pieces are collected in buffer, of
 * capacity bytes, at least 1. path, inputs and buffer must outlive the file. Allocates nothing.
 * Errors: ARGUMENT, IO; both name the path. Close with gb_output_close in any case. */
gumbel_status gb_output_create(gb_output_file *file, const char *path, const gb_input_list *inputs,
                               void *buffer, size_t capacity, gumbel_error *error);

/* Appends size bytes. Errors: IO naming the path. */
gumbel_status gb_output_write(gb_output_file *file, const void *data, uint64_t size, gumbel_error *error);

/* Appends zeros until the position is a multiple of alignment, a power of two. */
gumbel_status gb_output_align(gb_output_file *file, uint64_t alignment, gumbel_error *error);

/* Overwrites size bytes at the start of the file (0: none), syncs it, checks the target again and renames. A
 * writer that is killed just before the rename, when the file has a temporary name, leaves that.
 * The file must still be closed. Errors: those of gb_output_create. */
gumbel_status gb_output_commit(gb_output_file *file, const void *head, size_t size, gumbel_error *error);

/* Closes the file and removes it unless it was committed. Allowed twice. */
void gb_output_close(gb_output_file *file);

#endif
