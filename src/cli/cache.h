/* SPDX-License-Identifier: Apache-2.0
 *
 * Where programs are kept that commands have made from checkpoints, so that each is made once:
 * $XDG_CACHE_HOME/gumbel, or ~/.cache/gumbel (XDG Base Directory Specification 0.8). A program there is
 * called
 *
 *     NAME-IDENTITY-STATE.gumbel
 *
 * IDENTITY is a hash of where the checkpoint lies and of the options that it was exported with; STATE is one
 * of what may change underneath: the version of gumbel, and name, size and modification time of each of the
 * checkpoint's files. A program with the same identity and another state is stale. A program appears under
 * its name when it is complete, so that any number of processes may look and export at once.
 */
#ifndef GUMBEL_CLI_CACHE_H
#define GUMBEL_CLI_CACHE_H

#include "gumbel.h"

/* Whether path is a directory or a GGUF file. */
bool cli_is_checkpoint(const char *path);

/* What the program of a checkpoint depends on besides the checkpoint. */
typedef struct cli_cache_options {
    const char *quantize; /* as in gumbel_export_options */
    uint32_t max_context; /* as in gumbel_export_options */
} cli_cache_options;

/* The place of one program. */
typedef struct cli_cache_entry {
    char *directory;
    char *name;             /* in the directory */
    char *path;             /* both together */
    size_t identity_length; /* bytes of name that stale programs share */
} cli_cache_entry;

/* Finds the place and makes the directory. Errors: IO naming the file or directory; UNSUPPORTED where the
 * environment says of no place. Free entry with cli_cache_entry_free in any case. */
gumbel_status cli_cache_find(const char *checkpoint, const cli_cache_options *options, cli_cache_entry *entry,
                             gumbel_error *error);

/* How many stale programs there are of the entry's identity; remove: and removes them. Programs that run stay
 * whole until they end. */
size_t cli_cache_stale(const cli_cache_entry *entry, bool remove);

void cli_cache_entry_free(cli_cache_entry *entry);

#endif
