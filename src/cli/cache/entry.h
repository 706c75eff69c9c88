/* SPDX-License-Identifier: Apache-2.0
 *
 * Where one program lies in the cache. Each has a folder of its own,
 *
 *     NAME-IDENTITY/STATE.gumbel    the program
 *     NAME-IDENTITY/entry.json      what it was made from (cli/cache/record.h)
 *     NAME-IDENTITY/lock            who makes or removes it holds this (cli/cache/lock.h)
 *
 * NAME is the model's; IDENTITY is a hash of where the checkpoint lies and of the options that it was
 * exported with; STATE is one of what may change underneath: gumbel's version and the checkpoint's files. A
 * program of another state is stale. A program appears under its name when it is complete.
 */
#ifndef GUMBEL_CLI_CACHE_ENTRY_H
#define GUMBEL_CLI_CACHE_ENTRY_H

#include "cli/cache/record.h"
#include "gumbel.h"

typedef struct cli_cache_entry {
    char *folder;
    char *program;           /* the path of the program of record's state */
    cli_cache_record record; /* of the checkpoint as it is now */
} cli_cache_entry;

/* Finds the place of a checkpoint's program and makes the cache's folder, not the entry's. Arguments as of
 * cli_cache_describe; free with cli_cache_entry_free in any case. Errors: IO naming the file or folder;
 * UNSUPPORTED where the environment says of no place. */
gumbel_status cli_cache_find(const char *path, const char *repository, const cli_cache_options *options,
                             cli_cache_entry *entry, gumbel_error *error);

void cli_cache_entry_free(cli_cache_entry *entry);

/* The path of the program of that state in an entry's folder, in new memory. */
char *cli_cache_program_path(const char *folder, uint64_t state);

/* Whether an entry's folder may be called so. */
bool cli_cache_is_entry_name(const char *name);

/* Removes what an entry holds, under its lock: programs of any state, and what exports have left that were
 * killed. Programs that run stay whole until they end. */
void cli_cache_empty(const char *folder);

/* Removes an entry, under its lock. Errors: IO. */
gumbel_status cli_cache_remove(const char *folder, gumbel_error *error);

#endif
