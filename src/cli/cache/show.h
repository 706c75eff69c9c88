/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of the cache's entries on standard output, for people and for programs.
 */
#ifndef GUMBEL_CLI_CACHE_SHOW_H
#define GUMBEL_CLI_CACHE_SHOW_H

#include "cli/cache/list.h"

/* One line each: name, size, last use, state, recipe and source, with a heading; then how many there are in
 * the cache at path, and how large. Notes on standard error say what is wrong with those that cannot be read.
 */
void cli_cache_show(const cli_cache_items *items, const char *path);

/* An array of objects. */
void cli_cache_show_json(const cli_cache_items *items);

#endif
