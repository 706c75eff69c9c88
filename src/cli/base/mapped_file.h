/* SPDX-License-Identifier: Apache-2.0
 *
 * Which file an address of this process is mapped from.
 */
#ifndef GUMBEL_CLI_BASE_MAPPED_FILE_H
#define GUMBEL_CLI_BASE_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the file's path, cut to capacity bytes, at least 1, with the zero. False where the address is of no
 * file, or the system does not say (it has no /proc). May be called by signal handlers. */
bool cli_find_mapped_file(uintptr_t address, char *path, size_t capacity);

#endif
