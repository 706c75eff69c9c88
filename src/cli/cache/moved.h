/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs whose checkpoint has moved: their entry is of the path where it was.
 */
#ifndef GUMBEL_CLI_CACHE_MOVED_H
#define GUMBEL_CLI_CACHE_MOVED_H

#include "cli/cache/entry.h"

/* Looks in the other entries for the program of entry's checkpoint and takes it over, with a note, under
 * entry's lock. It is the same checkpoint where options, names, sizes and modification times of all files and
 * a sample of their contents are the same, and the place that the other entry tells of has it no longer.
 * False where there is none. */
bool cli_cache_take_moved(cli_cache_entry *entry);

#endif
