/* SPDX-License-Identifier: Apache-2.0
 *
 * One program in the cache. Each has a folder of its own and a lock, which is never removed,
 *
 *     NAME-KEY/program.gumbel
 *     NAME-KEY/entry             what it was made from; its modification time is the last use
 *     .NAME-KEY                  who makes or removes the folder holds an flock on this
 *
 * KEY is a hash of all that the program depends on: the checkpoint's files, the options, gumbel's version and
 * format. NAME, the model's when it was made, is for people: a checkpoint that moves keeps its program.
 */
#ifndef GUMBEL_CLI_CACHE_ENTRY_H
#define GUMBEL_CLI_CACHE_ENTRY_H

#include "base/byte_buffer.h"
#include "gumbel.h"

/* What a program depends on besides its checkpoint; as in gumbel_export_options. */
typedef struct cli_cache_options {
    const char *quantize;
    uint32_t max_context;
} cli_cache_options;

typedef enum cli_entry_state {
    CLI_ENTRY_CURRENT,    /* the next command that is given its checkpoint uses it */
    CLI_ENTRY_STALE,      /* checkpoint, recipe or gumbel have changed since */
    CLI_ENTRY_ORPHANED,   /* the checkpoint is gone */
    CLI_ENTRY_UNREADABLE, /* the program is damaged, or what it was made from is not known */
    CLI_ENTRY_UNFINISHED, /* its export was ended before it was done */
    CLI_ENTRY_EXPORTING   /* another process makes or removes it now */
} cli_entry_state;

typedef struct cli_cache_entry {
    char *folder, *program, *record_path, *lock;
    const char *name;      /* of the folder */
    gb_byte_buffer record; /* what follows, each text ended by a zero byte */
    const char *source;    /* the absolute path of the checkpoint that it was made from or used for
                            * last; NULL: the record cannot be read, and there is none of the following */
    const char *model;     /* "ORG/NAME", or the name of its folder or file */
    const char *recipe;    /* a name, or a file's absolute path; "": none was given */
    uint32_t max_context;
    /* Of entries that are listed (cli/cache/list.h): */
    uint64_t bytes;   /* of all its files */
    int64_t last_use; /* seconds since 1970; 0: not known */
    cli_entry_state state;
    char *reason;   /* of UNREADABLE, one sentence; else NULL */
    bool is_chosen; /* to be removed */
} cli_cache_entry;

/* Finds the entry of the checkpoint at path as it is now, or its place, and makes the cache's folder, not the
 * entry's. repository: "ORG/NAME", or NULL. superseded is one of the same checkpoint and options, as they
 * were before they changed, or zeroed. Free both with cli_cache_entry_free in any case. Errors: IO naming the
 * file or folder; UNSUPPORTED where the environment says of no place. */
gumbel_status cli_cache_find(const char *path, const char *repository, const cli_cache_options *options,
                             cli_cache_entry *entry, cli_cache_entry *superseded, gumbel_error *error);

void cli_cache_entry_free(cli_cache_entry *entry);

typedef struct cli_cache_entries {
    cli_cache_entry *items;
    size_t count;
} cli_cache_entries;

/* Reads the records of all entries in the cache at path. Free with cli_cache_entries_free in any case.
 * Errors: IO. */
gumbel_status cli_cache_read(const char *path, cli_cache_entries *entries, gumbel_error *error);

void cli_cache_entries_free(cli_cache_entries *entries);

/* Whether its checkpoint would be given this entry now. */
bool cli_cache_is_current(const cli_cache_entry *entry);

/* When it was last used, now; 0: not known. */
int64_t cli_cache_last_use(const cli_cache_entry *entry);

/* Notes that the program is used now, and for which checkpoint; where that cannot be noted, it is not. */
void cli_cache_note_use(const cli_cache_entry *entry);

/* Takes the entry's lock. While another process holds it: waits, after one note that names what is waited
 * for; waited_for NULL: does not wait, and *lock is -1. Give *lock to hub_unlock. Errors: IO, CANCELLED (a
 * signal that is caught). */
gumbel_status cli_cache_lock(const cli_cache_entry *entry, const char *waited_for, int *lock,
                             gumbel_error *error);

/* Opens the program; NULL where there is none. Errors: IO where others could have written it; with
 * *is_damaged, those of gumbel_program_open that making it again mends. */
gumbel_status cli_cache_load(const cli_cache_entry *entry, gumbel_program **program, bool *is_damaged,
                             gumbel_error *error);

/* Makes the folder with its record, under the entry's lock. Errors: IO. */
gumbel_status cli_cache_create(const cli_cache_entry *entry, gumbel_error *error);

/* Removes the folder, under the entry's lock. A program that runs stays whole until it ends. Errors: IO. */
gumbel_status cli_cache_remove(const cli_cache_entry *entry, gumbel_error *error);

#endif
