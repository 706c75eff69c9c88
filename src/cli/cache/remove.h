/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the cache's entries are removed, and their removal.
 */
#ifndef GUMBEL_CLI_CACHE_REMOVE_H
#define GUMBEL_CLI_CACHE_REMOVE_H

#include "cli/cache/list.h"
#include "cli/options/values.h"

/* What prune removes besides the entries that no command would use. */
typedef struct cli_prune_options {
    double oldest;      /* days since the last use; negative: any */
    uint64_t most_size; /* bytes of all that stays, those used last first; UINT64_MAX: any */
} cli_prune_options;

/* Chooses (one flag for each item) what prune removes: never what another process makes. */
void cli_cache_choose_old(const cli_cache_items *items, const cli_prune_options *options, bool *chosen);

/* Chooses what a word in names calls by an entry's or a model's name, or by the path of a checkpoint. Errors:
 * ARGUMENT for a word that calls nothing. */
gumbel_status cli_cache_choose_named(const cli_cache_items *items, const cli_words *names, bool *chosen,
                                     gumbel_error *error);

/* Removes those chosen and prints one line for each, then their sum; dry_run: prints only. One that was
 * used or made again since it was listed stays, with a note. Errors: IO, also for one that is being made; the
 * others are removed all the same. */
gumbel_status cli_cache_remove_chosen(const cli_cache_items *items, const bool *chosen, bool dry_run,
                                      gumbel_error *error);

#endif
