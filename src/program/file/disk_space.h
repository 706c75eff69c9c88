/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a disk has room for a file, asked before hours of work go into it.
 */
#ifndef GUMBEL_PROGRAM_FILE_DISK_SPACE_H
#define GUMBEL_PROGRAM_FILE_DISK_SPACE_H

#include "base/status.h"

#include <stdint.h>

/* Refuses where the file system of an open file has less than needed bytes free for this user. path is what
 * the message calls the file. A file system that does not tell is taken to have room. Errors: LIMIT, with
 * both numbers. Thread-safe. */
gumbel_status gb_check_disk_space(int descriptor, const char *path, uint64_t needed, gumbel_error *error);

#endif
