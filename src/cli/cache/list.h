/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in the cache, in which state, and what of it is removed.
 */
#ifndef GUMBEL_CLI_CACHE_LIST_H
#define GUMBEL_CLI_CACHE_LIST_H

#include "cli/cache/entry.h"
#include "cli/options/values.h"

/* Lists the entries in the cache at path with their states, those used last first. A cache that is not there
 * has none. Free with cli_cache_entries_free in any case. Errors: IO, also where others can write to the
 * cache. */
gumbel_status cli_cache_list(const char *path, cli_cache_entries *entries, gumbel_error *error);

/* Prints one line each: name, size, last use, state, recipe and source, with a heading; then how many there
 * are in the cache at path, and how large. Notes on standard error say what is wrong with those that cannot
 * be read. */
void cli_cache_show(const cli_cache_entries *entries, const char *path);

/* Prints an array of objects. */
void cli_cache_show_json(const cli_cache_entries *entries);

/* "current" */
const char *cli_entry_state_name(cli_entry_state state);

/* Chooses what no command would use, what was not used for more than oldest days (negative: any), and what
 * has no room in most_size bytes beside those that were used later; never what another process makes. */
void cli_cache_choose_old(cli_cache_entries *entries, double oldest, uint64_t most_size);

/* Chooses what a word in names calls by an entry's or a model's name, or by the path of a checkpoint. Errors:
 * ARGUMENT for a word that calls nothing. */
gumbel_status cli_cache_choose_named(cli_cache_entries *entries, const cli_words *names, gumbel_error *error);

/* Removes those chosen and prints one line for each, then their sum; dry_run: prints only. One that was
 * used or made again since it was listed stays, with a note. Errors: IO, also for one that is being made; the
 * others are removed all the same. */
gumbel_status cli_cache_remove_chosen(const cli_cache_entries *entries, bool dry_run, gumbel_error *error);

#endif
