/* SPDX-License-Identifier: Apache-2.0
 *
 * One program in the cache. Each has a folder of its own,
 *
 *     NAME-KEY/program.gumbel
 *     NAME-KEY/entry             what it was made from; its modification time is the last use
 *     NAME-KEY/lock              who makes or removes it holds this (cli/cache/lock.h)
 *
 * KEY is a hash of all that the program depends on: the checkpoint's files, the options, gumbel's version and
 * format. NAME, the model's when it was made, is for people: a checkpoint that moves keeps its program.
 */
#ifndef GUMBEL_CLI_CACHE_ENTRY_H
#define GUMBEL_CLI_CACHE_ENTRY_H

#include "gumbel.h"

#define CLI_CACHE_RECORD "entry"

/* What a program depends on besides its checkpoint; as in gumbel_export_options. */
typedef struct cli_cache_options {
    const char *quantize;
    uint32_t max_context;
} cli_cache_options;

typedef struct cli_cache_entry {
    char *folder, *program; /* paths */
    char *source;           /* the absolute path of the checkpoint that it was made from or used for last */
    char *model;            /* "ORG/NAME", or the name of its folder or file */
    char *recipe;           /* a name, or a file's absolute path; NULL: none was given */
    uint32_t max_context;
} cli_cache_entry;

/* Finds the entry of the checkpoint at path as it is now, or its place, and makes the cache's folder, not the
 * entry's. repository: "ORG/NAME", or NULL. Free with cli_cache_entry_free in any case. Errors: IO naming the
 * file or folder; UNSUPPORTED where the environment says of no place. */
gumbel_status cli_cache_find(const char *path, const char *repository, const cli_cache_options *options,
                             cli_cache_entry *entry, gumbel_error *error);

/* Reads the entry in that folder. False: what it was made from cannot be read, and source is NULL. */
bool cli_cache_read(const char *folder, cli_cache_entry *entry);

/* Whether its checkpoint would be given this entry now. */
bool cli_cache_is_current(const cli_cache_entry *entry);

/* The folder of an entry of the same checkpoint and options, as they were before they changed, in new memory;
 * NULL: there is none. */
char *cli_cache_find_superseded(const cli_cache_entry *entry);

/* Writes what the program is made from. Errors: IO. */
gumbel_status cli_cache_write(const cli_cache_entry *entry, gumbel_error *error);

void cli_cache_entry_free(cli_cache_entry *entry);

/* Notes that the program is used now, and for which checkpoint; where that cannot be noted, it is not. */
void cli_cache_note_use(const cli_cache_entry *entry);

/* When it was last used, in seconds since 1970; 0: not known. */
int64_t cli_cache_last_use(const char *folder);

/* Whether an entry's folder may be called so. */
bool cli_cache_is_entry_name(const char *name);

/* Removes what an entry holds but for its record, under its lock: a program, and what exports have left that
 * were killed. Programs that run stay whole until they end. */
void cli_cache_empty(const char *folder);

/* Removes an entry, under its lock. Errors: IO. */
gumbel_status cli_cache_remove(const char *folder, gumbel_error *error);

#endif
