/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in the cache, and in which state.
 */
#ifndef GUMBEL_CLI_CACHE_LIST_H
#define GUMBEL_CLI_CACHE_LIST_H

#include "cli/cache/entry.h"
#include "gumbel.h"

typedef enum cli_entry_state {
    CLI_ENTRY_CURRENT,    /* the next command that is given its checkpoint uses it */
    CLI_ENTRY_STALE,      /* checkpoint, recipe or gumbel have changed since */
    CLI_ENTRY_ORPHANED,   /* the checkpoint is gone */
    CLI_ENTRY_UNREADABLE, /* the program is damaged, or what it was made from is not known */
    CLI_ENTRY_UNFINISHED, /* its export was ended before it was done */
    CLI_ENTRY_EXPORTING   /* another process makes or removes it now */
} cli_entry_state;

/* "current" */
const char *cli_entry_state_name(cli_entry_state state);

typedef struct cli_cache_item {
    char *name;            /* of the entry's folder */
    cli_cache_entry entry; /* source NULL: it cannot be read */
    uint64_t bytes;        /* of all its files */
    int64_t last_use;      /* seconds since 1970; 0: not known */
    cli_entry_state state;
    char *reason; /* of UNREADABLE, one sentence; else NULL */
} cli_cache_item;

typedef struct cli_cache_items {
    cli_cache_item *items;
    size_t count;
} cli_cache_items;

/* Lists the entries in the cache at path, those used last first. A cache that is not there has none. Free
 * with cli_cache_items_free in any case. Errors: IO, also where others can write to the cache. */
gumbel_status cli_cache_list(const char *path, cli_cache_items *items, gumbel_error *error);

void cli_cache_items_free(cli_cache_items *items);

/* Looks at one entry again, under its lock. */
void cli_cache_look(const char *folder, const char *name, cli_cache_item *item);
void cli_cache_item_free(cli_cache_item *item);

#endif
