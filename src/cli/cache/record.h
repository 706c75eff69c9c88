/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of one program in the cache: the checkpoint and the options that it is made from. It stands
 * beside the program as entry.json; that file's modification time is when the program was last used.
 */
#ifndef GUMBEL_CLI_CACHE_RECORD_H
#define GUMBEL_CLI_CACHE_RECORD_H

#include "gumbel.h"

#define CLI_CACHE_RECORD "entry.json"

/* What a program depends on besides its checkpoint. */
typedef struct cli_cache_options {
    const char *quantize; /* as in gumbel_export_options */
    uint32_t max_context; /* as in gumbel_export_options */
} cli_cache_options;

typedef struct cli_cache_record {
    char *source; /* the checkpoint's absolute path */
    char *model;  /* "ORG/NAME", or the name of its folder or file */
    char *recipe; /* a name, or a file's absolute path; NULL: none was given */
    uint32_t max_context;
    uint64_t state;  /* hash of the options, of gumbel's version, and of the checkpoint's files as
                        cli_fingerprint_files sees them */
    uint64_t sample; /* of the checkpoint, as cli_fingerprint_sample takes it; 0: not taken yet */
} cli_cache_record;

/* Describes the checkpoint at path, as it is now, with these options. repository: "ORG/NAME", or NULL. Free
 * with cli_cache_record_free in any case. Errors: IO. */
gumbel_status cli_cache_describe(const char *path, const char *repository, const cli_cache_options *options,
                                 cli_cache_record *record, gumbel_error *error);

/* The state that the record's checkpoint has now. False where it is gone. */
bool cli_cache_state_now(const cli_cache_record *record, uint64_t *state);

/* A hash of source and options: what a program is looked for by. */
uint32_t cli_cache_identity(const cli_cache_record *record);

/* Reads the record of a folder of the cache; false where there is none that can be read. */
bool cli_cache_read_record(const char *folder, cli_cache_record *record);

/* Replaces it, under the folder's lock. Errors: IO. */
gumbel_status cli_cache_write_record(const char *folder, const cli_cache_record *record, gumbel_error *error);

void cli_cache_record_free(cli_cache_record *record);

/* Notes that the folder's program is used now; where that cannot be noted, it is not. */
void cli_cache_note_use(const char *folder);

/* When it was last used, in seconds since 1970; 0: never. */
int64_t cli_cache_last_use(const char *folder);

#endif
